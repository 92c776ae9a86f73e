"""Two checkouts that start at once measure one after the other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.measure.machine_lock import FOLDER_VARIABLE
from analysis.results.store.runs import read_runs
from tests.workflow.pipeline import copy_of_pipeline

COMMAND = ("analysis.measure", "calls", "--variant", "python", "--config", '{"machine": "box"}')
WAITS = "waiting until this machine is free: it is in use by process "


@pytest.mark.long
def test_the_second_checkout_reports_the_first_and_waits(tmp_path: Path) -> None:
    started = {}
    for checkout in (tmp_path / "one", tmp_path / "other"):
        study = copy_of_pipeline(checkout) / "kernels" / "calls" / "study.yaml"
        study.write_text(study.read_text().partition("  - name: compiled")[0])  # needs no module
    for checkout in (tmp_path / "one", tmp_path / "other"):
        started[checkout] = subprocess.Popen(
            [sys.executable, "-m", *COMMAND],
            cwd=checkout,
            env=os.environ | {FOLDER_VARIABLE: str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    output = {checkout: process.communicate()[0] for checkout, process in started.items()}
    assert {process.returncode for process in started.values()} == {0}, output
    waited, holder = sorted(started, key=lambda checkout: WAITS not in output[checkout])
    assert WAITS not in output[holder]
    assert f" in {holder}: measuring calls, since 2" in output[waited]
    runs = [next(read_runs(c / "results" / "box" / "calls", None)) for c in (holder, waited)]
    assert runs[0].about.end <= runs[1].about.start
