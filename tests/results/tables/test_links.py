"""The input of the fits, and the fits of every machine as a file between two stages."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from analysis.base.errors import HotpathError
from analysis.results.collect import Collected, collect
from analysis.results.model.fit import Calibration
from analysis.results.tables.links import (
    calibration,
    collect_fits,
    fits_text,
    predictable,
    read_fits,
    work_on,
)
from analysis.results.tables.summary import summarise
from analysis.study import discover
from analysis.study.calibration import FITTED
from tests.linked import CALIBRATION, made_up, true_seconds
from tests.synthetic import name_of, write_machine

STUDIES = {CALIBRATION.name: CALIBRATION}


def test_a_fit_is_the_same_after_it_was_a_file(tmp_path: Path) -> None:
    root = made_up(tmp_path)
    found = collect_fits(root / "results", discover(root))
    (tmp_path / "links.json").write_text(fits_text(found))
    read = read_fits(tmp_path / "links.json")
    assert fits_text(read) == fits_text(found) and set(read) == {"box"}
    before, after = (one["box"].low for one in (found, read))
    np.testing.assert_array_equal(after.values(), before.values())
    assert math.isfinite(after.link_rate)


def measured(folder: Path, runs: dict[str, float], rounds: int) -> tuple[Collected, Calibration]:
    """Results of a machine whose runs take these multiples of the true times, and their cases."""
    for run, factor in runs.items():
        write_machine(
            *(folder, "box", CALIBRATION),
            seconds=lambda *cell, factor=factor: factor * true_seconds(*cell),
            rounds=rounds,
            run=run,
            noise=0.0,
        )
    found = collect(folder, STUDIES)
    return found, calibration(found.samples, STUDIES, work_on(found.machines["box"], STUDIES))


def days(count: int) -> list[str]:
    return [f"2026-01-0{day}T00:00:00Z" for day in range(1, count + 1)]


def test_a_case_is_its_median_over_runs_and_its_error_their_spread(tmp_path: Path) -> None:
    factors = [1.0, 1.02, 1.1]
    found, cases = measured(tmp_path, dict(zip(days(3), factors, strict=True)), rounds=2)
    spread = np.std(np.log(factors), ddof=1)
    np.testing.assert_allclose(cases.errors, spread, rtol=1e-3)
    rows = predictable(summarise(found.samples, STUDIES), work_on(found.machines["box"], STUDIES))
    medians = rows.loc[rows["held_back"] == FITTED, "measured"]
    np.testing.assert_array_equal(cases.seconds, medians)
    assert set(cases.runs) == {3}


def test_a_case_of_one_run_has_the_spread_of_the_others(tmp_path: Path) -> None:
    """Also one of a single round, as those of the grid full are."""
    factors = [1.0, 1.02, 1.1]
    found, every = measured(tmp_path, dict(zip(days(3), factors, strict=True)), rounds=1)
    is_rare = found.samples["case"].str.startswith("row_bytes=32,")
    once = found.samples[~is_rare | (found.samples["run"] == name_of(days(1)[0]))]
    cases = calibration(once, STUDIES, work_on(found.machines["box"], STUDIES))
    assert len(cases.seconds) == len(every.seconds) and sorted(set(cases.runs)) == [1, 3]
    np.testing.assert_allclose(cases.errors, every.errors, rtol=1e-3)


def test_only_fresh_and_checked_times_are_fitted(tmp_path: Path) -> None:
    found, cases = measured(tmp_path, dict.fromkeys(days(1), 1.0), rounds=2)
    known = work_on(found.machines["box"], STUDIES)
    assert len(cases.seconds) > 0
    for spoiled in ({"verified": 0}, {"stale": True}):
        assert len(calibration(found.samples.assign(**spoiled), STUDIES, known).seconds) == 0


@pytest.mark.parametrize("text", ["[project]", "[]", '{"box": {}}'])
def test_unrelated_file_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "links.json").write_text(text)
    with pytest.raises(HotpathError, match=r"links\.json: expected the output of `python -m an"):
        read_fits(tmp_path / "links.json")
