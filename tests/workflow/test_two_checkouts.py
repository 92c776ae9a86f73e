"""Two checkouts that start at once measure one after the other, each as if alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from analysis.base.statistics import MIN_RUNS, estimate, verdict
from analysis.measure.machine_lock import FOLDER_VARIABLE
from analysis.results.store.runs import Run, read_runs
from tests.workflow.pipeline import copy_of_pipeline

COMMAND = ("analysis.measure", "calls", "--variant", "python", "--config", '{"machine": "box"}')
WAITS = "waiting until this machine is free: it is in use by process "
Times = Mapping[tuple[str, str], float]
"""Median seconds by variant and case."""


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two checkouts that share a machine, with a study that needs no module."""
    folder = tmp_path_factory.mktemp("checkouts")
    for name in ("one", "other"):
        study = copy_of_pipeline(folder / name) / "kernels" / "calls" / "study.yaml"
        study.write_text(study.read_text().partition("  - name: compiled")[0])
    return folder / "one", folder / "other"


def measure(*checkouts: Path) -> dict[Path, str]:
    """Start all measurements at once; return their output."""
    started = {
        checkout: subprocess.Popen(
            [sys.executable, "-m", *COMMAND],
            cwd=checkout,
            env=os.environ | {FOLDER_VARIABLE: str(checkout.parent)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for checkout in checkouts
    }
    output = {checkout: process.communicate()[0] for checkout, process in started.items()}
    assert {process.returncode for process in started.values()} == {0}, output
    return output


def newest(checkout: Path) -> Run:
    """The newest run of a checkout."""
    return next(read_runs(checkout / "results" / "box" / "calls", None))


def start_and_end(checkout: Path) -> tuple[str, str]:
    """Start and end of the newest run."""
    about = newest(checkout).about
    return about.start, about.end


def times(checkout: Path) -> Times:
    """Median times of the newest run."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in newest(checkout).rows:
        for values in row.values.values():
            found.setdefault(row.cell, []).extend(values)
    return {cell: float(np.median(values)) for cell, values in found.items()}


@pytest.mark.exhaustive
def test_second_checkout_reports_the_first_and_waits(
    checkouts: tuple[Path, Path],
) -> None:
    one, other = checkouts
    alone: list[Times] = []
    at_once: dict[Path, list[Times]] = {one: [], other: []}
    for _ in range(MIN_RUNS + 1):
        measure(one)
        alone.append(times(one))
        output = measure(one, other)
        waiting = [(a, b) for a, b in ((one, other), (other, one)) if WAITS in output[a]]
        assert len(waiting) == 1, output
        waited, holder = waiting[0]
        assert f" in {holder}: measuring calls, since 2" in output[waited]
        assert start_and_end(holder)[1] <= start_and_end(waited)[0]
        for checkout, known in at_once.items():
            known.append(times(checkout))
    verdicts = []
    for cell in alone[0]:
        for known in at_once.values():
            ratios = [a[cell] / b[cell] for a, b in zip(alone, known, strict=True)]
            middle, low, high = estimate([[ratio] for ratio in ratios])
            verdicts.append(verdict(middle, low, high, ratios))
            print(f"{cell}: {middle:.3f} ({low:.3f} to {high:.3f}): {verdicts[-1]}")
    # One of the six may differ by chance.
    assert sum(each in ("faster", "slower") for each in verdicts) <= 1
