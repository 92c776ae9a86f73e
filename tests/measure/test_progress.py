"""The line before a round, and the time left by budgets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.measure.plan import Plan, Target
from analysis.measure.progress import Progress, expected, round_seconds
from analysis.study import Study
from tests.measure.studies import GRID, HERE, WITH_GPU, write_study


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return write_study(tmp_path / "whole", {"name": "one"}, {"name": "two"})


def test_the_budget_is_shared_among_cells(study: Study, where: Target) -> None:
    whole = Plan(study, study.variants, GRID, where)
    assert round_seconds(whole, HERE) * GRID.rounds == pytest.approx(study.budget_s)
    plan = Plan(study, study.variants[:1], GRID, where)
    assert round_seconds(plan, HERE) * GRID.rounds == pytest.approx(study.budget_s / 2)


def test_variants_that_cannot_run_take_no_time(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "half", {"name": "one"}, {"name": "two", "needs": ["gpu"]})
    plan = Plan(study, study.variants, GRID, where)
    assert round_seconds(plan, HERE) * 2 == pytest.approx(round_seconds(plan, WITH_GPU))


def test_studies_that_are_still_to_come_count(tmp_path: Path, study: Study, where: Target) -> None:
    other = write_study(tmp_path / "other", {"name": "one"})
    plans = [Plan(each, each.variants, GRID, where) for each in (study, other)]
    first, last = expected(plans, [HERE] * len(plans))
    assert (first.place, first.places) == (1, 2)
    assert first.later_s == pytest.approx(other.budget_s)
    assert (last.place, last.places, last.later_s) == (2, 2, 0)


def test_a_line_has_the_place_and_the_time_left(study: Study, where: Target) -> None:
    plan = Plan(study, study.variants, replace(GRID, rounds=3), where)
    progress = Progress(60.0, later_s=120.0, place=3, places=16)
    shown = "whole: study 3 of 16, round 2 of 3, about 4 min left"
    assert progress.line(plan, 1, 2) == shown
    assert Progress(20.0).line(plan, 1, 2) == "whole: round 2 of 3, about 40 s left"
