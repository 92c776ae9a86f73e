"""Early forecast of the time left by a second run."""

from __future__ import annotations

import io
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.measure.forecast import forecasts
from analysis.measure.plan import Plan, Target
from analysis.measure.publish import publish
from analysis.measure.run import run_rounds
from analysis.study import Study
from tests.measure.studies import GRID, HERE, host, run, write_study

SLEEPS = """
import time


def fill(out):
    time.sleep({seconds})
    out[:] = b"\\x01" * len(out)
"""


class Stamped(io.StringIO):
    """A log with the time of each line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[float, str]] = []

    def write(self, text: str) -> int:
        self.lines += [(time.monotonic(), line) for line in text.splitlines()]
        return len(text)


def sleeping(folder: Path, seconds: float) -> Study:
    folder.mkdir()
    (folder / "one.py").write_text(SLEEPS.format(seconds=seconds))
    return write_study(folder, {"name": "one"})


@pytest.mark.exhaustive
def test_the_time_left_is_within_a_quarter_after_a_tenth_of_a_second_run(
    tmp_path: Path, where: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    studies = [sleeping(tmp_path / "short", 0.02), sleeping(tmp_path / "longer", 0.08)]
    for study in studies:
        run(Plan(study, study.variants, replace(GRID, rounds=2), where), tmp_path)
    time.sleep(1)  # runs are identified by the second
    log = Stamped()
    monkeypatch.setattr(sys, "stdout", log)
    began = time.monotonic()
    plans = [Plan(study, study.variants, replace(GRID, rounds=5), where) for study in studies]
    for plan, expected in zip(plans, forecasts(plans, [HERE] * len(plans)), strict=True):
        run_rounds(plan, HERE, host(tmp_path), expected)
        list(publish(plan, HERE, host(tmp_path)))
    ended = time.monotonic()
    at, line = next((at, line) for at, line in log.lines if at - began >= 0.1 * (ended - began))
    found = re.fullmatch(r"short: round \d of 5 done, study 1 of 2, (\d+) s left", line)
    assert found is not None, line
    assert float(found[1]) == pytest.approx(ended - at, rel=0.25)
