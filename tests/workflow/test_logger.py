"""The lines that the logger plugin makes of Snakemake's events."""

from __future__ import annotations

import io
import logging
import sys
from pathlib import Path

import pytest
from snakemake_interface_logger_plugins.settings import OutputSettingsLoggerInterface
from snakemake_logger_plugin_hotpath import LOG_LINES, LogHandler, suggest_targets


class Logged:
    """A logger with the plugin's handler, and the lines that this writes."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool = False, **settings: bool
    ) -> None:
        self.stream = io.StringIO()
        monkeypatch.setattr(self.stream, "isatty", lambda: is_terminal, raising=False)
        monkeypatch.setattr(sys, "stderr", self.stream)
        monkeypatch.setattr(logging, "raiseExceptions", True)
        names = ("stdout", "dryrun", "printshellcmds", "verbose")
        common = OutputSettingsLoggerInterface()
        vars(common).update(dict.fromkeys(names, False) | settings)
        self.logger = logging.Logger("snakemake")
        self.logger.addHandler(LogHandler(common, None))

    def event(self, name: str, text: str = "Snakemake's text", **fields: object) -> None:
        self.logger.info(text, extra={"event": name, **fields})

    def start(self, total: int) -> None:
        self.event("run_info", "a table", stats={"total": total})

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def test_without_a_terminal_ten_lines_report_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    logged = Logged(monkeypatch)
    logged.start(231)
    for done in range(231):
        logged.logger.info(f"Touching output file .snakemake/{done}.")
        logged.event("progress", done=done + 1, total=231)
        logged.event("job_finished", job_id=done)
    assert len(logged.lines) == 10
    assert logged.lines[0] == "24 of 231 jobs done"
    assert logged.lines[-1] == "231 of 231 jobs done"


def test_on_a_terminal_the_last_line_shows_the_newest_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "29")
    logged = Logged(monkeypatch, is_terminal=True)
    logged.start(2)
    logged.event("job_info", jobid=1, rule_msg="Building it for sm_90", rule_name="module")
    logged.logger.warning("a warning")
    drawn = "\r\x1b[K0 of 2 jobs done: Building i"
    assert logged.stream.getvalue() == f"{drawn}\r\x1b[Ka warning\n"


def test_a_dry_run_lists_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    logged = Logged(monkeypatch, dryrun=True)
    logged.start(2)
    logged.event("job_info", jobid=1, rule_msg="Building it", rule_name="module")
    logged.event("job_info", jobid=2, rule_msg=None, rule_name="build")
    logged.start(2)
    assert logged.lines == ["a table", "Building it", "build"]


@pytest.mark.parametrize(("length", "extra_lines"), [(2, 0), (LOG_LINES + 1, 1)])
def test_a_failure_is_reported_once_with_the_end_of_its_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, length: int, extra_lines: int
) -> None:
    logged = Logged(monkeypatch)
    logged.start(1)
    log = tmp_path / "log"
    log.write_text("".join(f"line {i}\n" for i in range(length)))
    logged.event("job_info", jobid=1, rule_msg="Building it", rule_name="module")
    logged.logger.error("RuleException:\nCalledProcessError in file ...", extra={"event": "error"})
    for _ in range(2):
        logged.event("job_error", jobid=1, log=[str(log), str(tmp_path / "none")])
    logged.logger.critical("WorkflowError:\nAt least one job did not complete successfully.")
    shown = [f"line {i}" for i in range(length)][-LOG_LINES:]
    assert logged.lines[0] == "failed: Building it"
    assert logged.lines[1 : 1 + len(shown)] == shown
    assert len(logged.lines) == 1 + len(shown) + extra_lines


def test_other_messages_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    logged = Logged(monkeypatch)
    logged.logger.error("MissingRuleException: no rule", extra={"event": "error"})
    logged.logger.info("Building DAG of jobs...")
    logged.logger.info("Provided cores: 8", extra={"event": "resources_info"})
    assert logged.lines == ["MissingRuleException: no rule", "Building DAG of jobs..."]


@pytest.mark.parametrize("option", ["printshellcmds", "verbose"])
def test_an_option_brings_back_all_messages(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    logged = Logged(monkeypatch, **{option: True})
    logged.event("job_info", "a job", jobid=1, rule_msg="Building it", rule_name="module")
    logged.event("job_finished", "a finished job", job_id=1)
    assert logged.lines == ["a job", "a finished job"]


def test_an_unknown_target_is_one_line_with_the_valid_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    logged = Logged(monkeypatch)
    suggest_targets(lambda unknown: ["build", "site"])
    logged.logger.error(
        "MissingRuleException:\nNo rule to produce mesure (if you use input functions make sure "
        "that they don't raise unexpected exceptions)."
    )
    assert logged.lines == [
        "error: target: expected one of build, site, or a file that a rule makes, got 'mesure'"
    ]
