"""What a run of the workflow tells of its jobs: how many are done, and a failure once.

Snakemake itself is hushed by the profile's `quiet`. What it says of its scheduling, for which that
has no word, is left out here.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from analysis.base.errors import FieldError
from analysis.base.terminal import Line

STEPS = 10
"""Without a terminal, so many lines tell how many jobs are done."""
LOG_LINES = 40
"""How much of a failed job's log is shown."""
SCHEDULING = ("job_scheduler", "jobs")
"""Snakemake's modules whose remarks are left out."""
HUSHED = ("resources_info", "run_info", "job_started", "job_finished", "progress")
"""Events that have no word of their own in `quiet`, or that `Jobs` needs."""
LEFT_OUT = (
    "CalledProcessError",
    "At least one job did not complete successfully",
    "Touching output file ",
)
"""Of what says once more that a job has failed, or is done."""
NO_RULE = re.compile(r"MissingRuleException:?\s+No rule to produce (\S+)")
"""What Snakemake says of a target that is misspelt."""


class Jobs(logging.Handler):
    """Tells Snakemake's events in a line; in a dry run, which jobs there would be."""

    def __init__(self, line: Line, dry_run: Callable[[], bool]) -> None:
        super().__init__()
        self._line = line
        self._dry_run = dry_run
        self._messages: dict[int, str] = {}
        self._done = 0
        self._total = 0

    def emit(self, record: logging.LogRecord) -> None:
        about: dict[str, Any] = vars(record)
        match about.get("event"):
            case "run_info" if not self._total:
                self._total = about["stats"]["total"]
                if self._dry_run():
                    self._line.say(record.getMessage())
            case "job_info":
                self._tell_start(about["jobid"], about["rule_msg"] or about["rule_name"])
            case "progress":
                self._done = about["done"]
                self._tell_progress()
            case "job_error":
                self._tell_failure(about["jobid"], about["log"])

    def _tell_start(self, job: int, message: str) -> None:
        self._messages[job] = message
        if self._dry_run():
            self._line.say(message)
        else:
            self._line.draw(f"{self._done} of {self._total} jobs done: {message}")

    def _tell_progress(self) -> None:
        told = f"{self._done} of {self._total} jobs done"
        self._line.draw(told)
        if not self._line.live and self._part(self._done) > self._part(self._done - 1):
            self._line.say(told)

    def _part(self, done: int) -> int:
        return done * STEPS // self._total

    def _tell_failure(self, job: int, logs: list[str]) -> None:
        self._line.say(f"failed: {self._messages.get(job, f'job {job}')}")
        texts = ((log, Path(log).read_text(errors="replace")) for log in logs if Path(log).exists())
        # The rule's own log comes first; a cluster adds one that repeats it.
        log, text = next(filter(itemgetter(1), texts), ("", ""))
        lines = text.splitlines()
        for line in lines[-LOG_LINES:]:
            self._line.say(line)
        if len(lines) > LOG_LINES:
            self._line.say(f"(the last {LOG_LINES} of {len(lines)} lines of {log})")


class Hush(logging.Filter):
    """Lets through what `Jobs` does not tell, and makes room for it."""

    def __init__(self, line: Line, targets: Callable[[str], Sequence[str]]) -> None:
        super().__init__()
        self._line = line
        self._targets = targets

    def filter(self, record: logging.LogRecord) -> bool:
        if unknown := NO_RULE.search(record.getMessage()):
            self._line.say(f"error: {FieldError('target', self._expected(unknown[1]), unknown[1])}")
            return False
        is_scheduling = record.module in SCHEDULING and record.levelno <= logging.INFO
        is_hushed = vars(record).get("event") in HUSHED
        is_left_out = any(words in record.getMessage() for words in LEFT_OUT)
        if is_scheduling or is_hushed or is_left_out:
            return False
        self._line.clear()
        return True

    def _expected(self, unknown: str) -> str:
        return f"one of {', '.join(self._targets(unknown))}, or a file that a rule makes"


def tell_jobs(
    logger: logging.Logger,
    line: Line,
    dry_run: Callable[[], bool],
    targets: Callable[[str], Sequence[str]],
) -> None:
    """Make `logger`, which is Snakemake's, tell jobs in `line`. Its file keeps everything.

    Whether it is a `dry_run`, and what `targets` there are in place of one that is unknown, is
    asked when something is told: it is not known while rules are read.
    """
    # Where the disk is full, the job says so, and not every line of the log.
    logging.raiseExceptions = False
    for handler in logger.handlers:
        if isinstance(handler, logging.FileHandler):
            handler.filters.clear()
        else:
            handler.addFilter(Hush(line, targets))
    logger.addHandler(Jobs(line, dry_run))
