"""Fits to the link of every machine, as a file between two stages."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from analysis.base.errors import HotpathError
from analysis.results.model.fit import Calibration
from analysis.results.store.collect import collect
from analysis.results.tables import links
from analysis.results.tables.links import Links, collect_links
from analysis.results.tables.summary import summarise
from analysis.study import discover
from tests.linked import CALIBRATION, made_up, true_seconds
from tests.synthetic import write_machine


def test_a_fit_is_the_same_after_it_was_a_file(tmp_path: Path) -> None:
    root = made_up(tmp_path)
    found = collect_links(root / "results", discover(root))
    read = Links.from_text(found.to_text())
    assert read.to_text() == found.to_text()
    before, after = (one.every["box"].low for one in (found, read))
    np.testing.assert_array_equal(after.values(), before.values())
    assert math.isfinite(after.link_rate)


def test_machine_with_few_runs_has_no_comparison_of_runs(tmp_path: Path) -> None:
    root = made_up(tmp_path)
    found = collect_links(root / "results", discover(root))
    assert set(found.every) == {"box"} and not found.kept and not found.held


def test_each_fit_uses_its_runs_and_checked_times_with_half_their_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 5)]
    for run in runs:
        write_machine(tmp_path, "box", CALIBRATION, seconds=true_seconds, rounds=4, run=run)
    studies = {CALIBRATION.name: CALIBRATION}
    found = collect(tmp_path, studies)
    fitted: list[list[Calibration]] = []
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})  # no forked processes
    monkeypatch.setattr(links, "fit", lambda runs, **_: fitted.append(runs))
    links.fit_links(found.samples, found.machines, studies)
    every, kept, held = fitted
    seconds = [list(of_run.seconds) for of_run in every]
    assert [list(of_run.seconds) for of_run in (*kept, *held)] == seconds and len(kept) == 3
    summary = summarise(found.samples[found.samples["run"] == runs[-1]])
    width = (summary["ci_high"] - summary["ci_low"]) / summary["median"]
    assert set(held[0].errors.round(9)) <= set((width / 2).round(9))
    links.fit_links(found.samples.assign(verified=0), found.machines, studies)
    assert len(held[0].seconds) > 0 == len(fitted[-1][0].seconds)


def test_cases_of_a_single_round_are_left_out_of_a_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time of one round has no interval, so its error is unknown."""
    write_machine(tmp_path, "box", CALIBRATION, seconds=true_seconds, rounds=1)
    studies = {CALIBRATION.name: CALIBRATION}
    found = collect(tmp_path, studies)
    fitted: list[Calibration] = []
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})  # no forked processes
    monkeypatch.setattr(links, "fit", lambda runs, **_: fitted.extend(runs))
    links.fit_links(found.samples, found.machines, studies)
    assert fitted and all(len(of_run.seconds) == 0 for of_run in fitted)


@pytest.mark.parametrize("text", ["[project]", "[]", '{"others": {}}', '{"every": {"box": {}}}'])
def test_unrelated_file_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "links.json").write_text(text)
    with pytest.raises(HotpathError, match=r"links\.json: expected what `python -m analysis\."):
        Links.from_file(tmp_path / "links.json")
