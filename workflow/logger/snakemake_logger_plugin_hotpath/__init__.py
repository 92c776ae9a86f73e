"""A logger of Snakemake that reports progress in one line and each failure once.

A dry run lists its jobs. `--printshellcmds` and `--verbose` bring back Snakemake's messages, which
its log file always has.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

from snakemake_interface_logger_plugins.base import LogHandlerBase

__all__ = ["LogHandler", "suggest_targets"]

PROGRESS_LINES = 10
"""Maximum number of progress lines where there is no terminal."""
LOG_LINES = 40
"""Maximum number of lines shown of a failed job's log."""
SCHEDULING = ("job_scheduler", "scheduler", "jobs")
"""Snakemake's modules whose messages of level INFO are left out."""
HIDDEN_EVENTS = ("workflow_started", "resources_info", "job_started", "job_finished", "shellcmd")
REPEATED = (
    "CalledProcessError",
    "At least one job did not complete successfully",
    "Touching output file ",
    "Singularity containers: ignored",
    "Activating singularity image ",
)
"""Parts of messages that repeat a failure, or are the same in every job or run."""
NO_RULE = re.compile(r"MissingRuleException:?\s+No rule to produce (\S+)")
"""Snakemake's message about a misspelt target."""
CLEAR = "\r\x1b[K"


def _require_cache() -> None:
    """Have Snakemake keep its sources here if the home directory cannot be written to. It imports
    this module before it makes their folder."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_usable = os.access(folder, os.W_OK)
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        is_usable = False
    if not is_usable:
        os.environ["XDG_CACHE_HOME"] = str(Path(".snakemake", "cache").absolute())


_require_cache()

_suggested: list[Callable[[str], Sequence[str]]] = []


def suggest_targets(suggest: Callable[[str], Sequence[str]]) -> None:
    """Have the error message for an unknown target list `suggest(target)`."""
    _suggested[:] = [suggest]


class LogHandler(LogHandlerBase):
    """Writes a run's jobs, failures and messages to stderr, those of a dry run to stdout."""

    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def __post_init__(self) -> None:
        self.stream: TextIO = sys.stdout if self.common_settings.stdout else sys.stderr
        self._is_terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self._is_drawn = False
        self._is_full = self.common_settings.printshellcmds or self.common_settings.verbose
        self._messages: dict[int, str] = {}
        self._failed: set[int] = set()
        self._done = 0
        self._total = 0
        # If the disk is full, the failed job reports it, not every line of Snakemake's log file.
        logging.raiseExceptions = False

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = vars(record)
        event = fields.get("event")
        if self._is_full:
            self._print(self.format(record))
        elif unknown := NO_RULE.search(record.getMessage()):
            self._print(f"error: target: {_expected(unknown[1])}got '{unknown[1]}'")
        elif event == "run_info":
            self._start(record.getMessage(), fields["stats"]["total"])
        elif event == "job_info":
            self._report_job(fields["jobid"], fields["rule_msg"] or fields["rule_name"])
        elif event == "progress":
            self._report_progress(fields["done"])
        elif event == "job_error":
            self._report_failure(fields["jobid"], fields["log"])
        elif not _is_hidden(record):
            self._print(self.format(record))

    def _start(self, statistics: str, total: int) -> None:
        """Note the number of jobs. A dry run logs it a second time at its end."""
        if not self._total and self.common_settings.dryrun:
            self._print(statistics)
        self._total = self._total or total

    def _report_job(self, job: int, message: str) -> None:
        self._messages[job] = message
        if self.common_settings.dryrun:
            self._print(message)
        else:
            self._draw(f"{self._done} of {self._total} jobs done: {message}")

    def _report_progress(self, done: int) -> None:
        is_next_part = self._part(done) > self._part(done - 1)
        self._done = done
        line = f"{done} of {self._total} jobs done"
        if self._is_terminal:
            self._draw(line)
        elif is_next_part:
            self._print(line)

    def _part(self, done: int) -> int:
        return done * PROGRESS_LINES // self._total

    def _report_failure(self, job: int, logs: Sequence[str]) -> None:
        # Some versions of Snakemake log a failure twice.
        if job in self._failed:
            return
        self._failed.add(job)
        self._print(f"failed: {self._messages.get(job, f'job {job}')}")
        texts = ((log, Path(log).read_text(errors="replace")) for log in logs if Path(log).exists())
        # The rule's log comes first; a cluster adds one that repeats it.
        log, text = next(filter(itemgetter(1), texts), ("", ""))
        lines = text.splitlines()
        for line in lines[-LOG_LINES:]:
            self._print(line)
        if len(lines) > LOG_LINES:
            self._print(f"(the last {LOG_LINES} of {len(lines)} lines of {log})")

    def _draw(self, text: str) -> None:
        """On a terminal, replace the last line by `text`."""
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"{CLEAR}{text[:width]}")
            self._is_drawn = True

    def _print(self, text: str) -> None:
        """Write a line that stays."""
        self._write(f"{CLEAR if self._is_drawn else ''}{text}\n")
        self._is_drawn = False

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


def _expected(unknown: str) -> str:
    return "".join(
        f"expected one of {', '.join(suggest(unknown))}, or a file that a rule makes, "
        for suggest in _suggested
    )


def _is_hidden(record: logging.LogRecord) -> bool:
    is_scheduling = record.module in SCHEDULING and record.levelno <= logging.INFO
    is_hidden_event = vars(record).get("event") in HIDDEN_EVENTS
    is_about_host = str(vars(record).get("quietness", "")).lower().endswith("host")
    is_repeated = any(words in record.getMessage() for words in REPEATED)
    return is_scheduling or is_hidden_event or is_about_host or is_repeated
