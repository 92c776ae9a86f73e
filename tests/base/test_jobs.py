"""What is told of Snakemake's events."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest

from analysis.base.jobs import LOG_LINES, tell_jobs
from analysis.base.terminal import Line


class Told:
    """A logger like Snakemake's, whose own words and ours go to one stream."""

    def __init__(self, dry_run: bool) -> None:
        self.stream = io.StringIO()
        self.logger = logging.Logger("snakemake")
        self.logger.addHandler(logging.StreamHandler(self.stream))
        tell_jobs(
            self.logger, Line(self.stream), lambda: dry_run, lambda unknown: ["build", "site"]
        )

    def event(self, name: str, text: str = "theirs", **about: object) -> None:
        self.logger.info(text, extra={"event": name, **about})

    def start(self, total: int) -> None:
        self.event("run_info", "a table", stats={"total": total})

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def test_without_a_terminal_ten_lines_tell_how_many_jobs_are_done() -> None:
    told = Told(dry_run=False)
    told.start(231)
    for done in range(231):
        told.logger.info(f"Touching output file .snakemake/{done}.")
        told.event("progress", done=done + 1, total=231)
        told.event("job_finished", job_id=done)
    assert len(told.lines) == 10
    assert told.lines[0] == "24 of 231 jobs done"
    assert told.lines[-1] == "231 of 231 jobs done"


def test_a_dry_run_lists_the_jobs() -> None:
    told = Told(dry_run=True)
    told.start(2)
    # The profile's `quiet` keeps this from Snakemake's own handler.
    told.logger.handlers[0].addFilter(lambda record: vars(record).get("event") != "job_info")
    told.event("job_info", jobid=1, rule_msg="Building it", rule_name="module")
    told.event("job_info", jobid=2, rule_msg=None, rule_name="build")
    told.start(2)
    assert told.lines == ["a table", "Building it", "build"]


@pytest.mark.parametrize(("length", "more"), [(2, 0), (LOG_LINES + 1, 1)])
def test_a_failure_is_told_once_with_the_end_of_its_log(
    tmp_path: Path, length: int, more: int
) -> None:
    told = Told(dry_run=False)
    told.start(1)
    log = tmp_path / "log"
    log.write_text("".join(f"line {i}\n" for i in range(length)))
    told.logger.handlers[0].addFilter(
        lambda r: vars(r).get("event") not in ("job_info", "job_error")
    )
    told.event("job_info", jobid=1, rule_msg="Building it", rule_name="module")
    told.logger.error("RuleException:\nCalledProcessError in file ...", extra={"event": "error"})
    told.event("job_error", jobid=1, log=[str(log), str(tmp_path / "none")])
    told.logger.critical("WorkflowError:\nAt least one job did not complete successfully.")
    shown = [f"line {i}" for i in range(length)][-LOG_LINES:]
    assert told.lines[0] == "failed: Building it"
    assert told.lines[1 : 1 + len(shown)] == shown
    assert len(told.lines) == 1 + len(shown) + more


def test_what_snakemake_says_otherwise_is_let_through() -> None:
    told = Told(dry_run=False)
    told.logger.error("MissingRuleException: no rule", extra={"event": "error"})
    told.logger.info("Building DAG of jobs...")
    assert told.lines == ["MissingRuleException: no rule", "Building DAG of jobs..."]


def test_a_misspelt_target_is_one_line_with_those_there_are() -> None:
    told = Told(dry_run=False)
    told.logger.error(
        "MissingRuleException:\nNo rule to produce mesure (if you use input functions make sure "
        "that they don't raise unexpected exceptions)."
    )
    assert told.lines == [
        "error: target: expected one of build, site, or a file that a rule makes, got 'mesure'"
    ]
