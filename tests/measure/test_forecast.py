"""Forecast of the duration of a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.measure.forecast import Pace, forecasts, last_pace, round_seconds
from analysis.measure.needs import Provision
from analysis.measure.plan import Plan, Target
from analysis.results.store.results import load_variant
from analysis.results.store.samples import Sample, read_samples, to_text
from analysis.study import Study, Variant
from tests.measure.studies import GRID, HERE, WITH_GPU, write_study
from tests.repository import STUDIES

RUN, LATER = "2026-01-02T03:04:05Z", "2026-01-02T04:00:00Z"
ROUND_S = 100
"""From the start of one round to that of the next."""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return write_study(tmp_path / "whole", {"name": "one"}, {"name": "two"})


def write_run(
    where: Target, study: Study, variant: str, begins: list[list[tuple[str, int]]], run: str = RUN
) -> None:
    """Results of a variant whose cells begin that many seconds after their round."""
    start = datetime.fromisoformat(run) + timedelta(seconds=1)

    def at(seconds: int) -> str:
        return f"{(start + timedelta(seconds=seconds)).astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"

    row = Sample(
        study.name, variant, "", "host_time", "s", 1.0, run, 0, 0, 1, "ok", "", "", None, ""
    )
    rows = [
        Sample(**{**vars(row), "case": case, "round": number, "started_at": at(begin)})
        for number, cells in enumerate(begins)
        for case, begin in ((case, ROUND_S * number + begin) for case, begin in cells)
    ]
    path = where.root / where.machine / study.name / f"{variant}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_text(rows))


def pace_of(study: Study, where: Target) -> Pace:
    """The pace of the newest run, which there is."""
    pace = last_pace(study, where)
    assert pace is not None
    return pace


def test_a_cell_lasts_until_the_next_one_of_its_round_begins(study: Study, where: Target) -> None:
    write_run(where, study, "one", [[("n=1", 0), ("n=2", 40)], [("n=1", 5), ("n=2", 55)]])
    write_run(where, study, "two", [[("n=1", 10), ("n=2", 60)], [("n=1", 15), ("n=2", 75)]])
    pace = pace_of(study, where)
    assert pace.cells == {
        ("one", "n=1"): 10,  # 0 to 10, 5 to 15
        ("two", "n=1"): 35,  # 10 to 40, 15 to 55
        ("one", "n=2"): 20,  # 40 to 60, 55 to 75
    }
    # The last cell of a round, and what lies between it and the next one: 60 to 105.
    assert pace.overhead == 45
    both = Plan(study, study.variants, GRID, where)
    assert round_seconds(both, HERE) == pytest.approx(10 + 35 + 20 + 45 + 65 / 3)
    one = Plan(study, study.variants[:1], GRID, where)
    assert round_seconds(one, HERE) == 10 + 20 + 45


def test_the_newest_run_counts(study: Study, where: Target) -> None:
    write_run(where, study, "one", [[("n=1", 0), ("n=2", 40)], [("n=1", 0)]])
    write_run(where, study, "two", [[("n=1", 7), ("n=2", 9)], [("n=1", 0)]], LATER)
    pace = pace_of(study, where)
    assert pace.cells == {("one", "n=1"): 40, ("two", "n=1"): 2}
    assert pace.overhead == ROUND_S - 9


def test_duration_of_a_cell_ends_at_the_next_cell_of_its_run(study: Study, where: Target) -> None:
    """The newest run measured one of the variants only."""
    path = where.root / where.machine / study.name / "one.csv"
    write_run(where, study, "one", [[("n=1", 0), ("n=2", 40)]])
    older = read_samples(path)
    write_run(where, study, "two", [[("n=1", 10), ("n=2", 60)]])
    write_run(where, study, "one", [[("n=1", 0), ("n=2", 5)]], LATER)
    path.write_text(to_text([*read_samples(path), *older]))
    assert pace_of(study, where).cells == {
        ("one", "n=1"): 5,
        ("two", "n=1"): 30,
        ("one", "n=2"): 20,
    }


def test_skipped_cell_takes_the_time_of_its_attempt(study: Study, where: Target) -> None:
    write_run(where, study, "two", [[("n=1", 10), ("n=2", 42)]])
    write_run(where, study, "one", [[("n=1", 1), ("n=2", 40)]])
    path = where.root / where.machine / study.name / "one.csv"
    rows = read_samples(path)
    path.write_text(
        to_text([rows[0], replace(rows[1], status="skipped", value=None, reason="none")])
    )
    assert pace_of(study, where).cells == {("one", "n=1"): 9, ("two", "n=1"): 30, ("one", "n=2"): 2}


def test_repeated_round_comes_last(study: Study, where: Target) -> None:
    again, second, third = [("n=1", 300), ("n=2", 340)], [("n=1", 0), ("n=2", 40)], [("n=1", 0)]
    write_run(where, study, "one", [again, second, third])
    pace = pace_of(study, where)
    assert pace.overhead == 60  # from 140 to 200, and from 240, the end of that cell, to 300


def test_before_the_first_run_the_budget_is_shared_among_cells(study: Study, where: Target) -> None:
    assert last_pace(study, where) is None
    plan = Plan(study, study.variants[:1], GRID, where)
    assert round_seconds(plan, HERE) * GRID.rounds == pytest.approx(study.budget_s / 2)


def test_cases_that_few_rounds_measure_take_less_on_average(study: Study, where: Target) -> None:
    whole = round_seconds(Plan(study, study.variants, GRID, where), HERE)
    cells = {("one", "n=1"): 1.0, ("one", "n=2"): 1 / 3}
    assert Pace({("one", "n=1"): 2.0, ("one", "n=2"): 6.0}, 1.0).round_s(cells) == 1 + 2 + 2
    assert whole * GRID.rounds == pytest.approx(study.budget_s)


def test_variants_that_cannot_run_take_no_time(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "half", {"name": "one"}, {"name": "two", "needs": ["gpu"]})
    plan = Plan(study, study.variants, GRID, where)
    assert round_seconds(plan, HERE) * 2 == pytest.approx(round_seconds(plan, WITH_GPU))


def test_studies_that_are_still_to_come_count(tmp_path: Path, study: Study, where: Target) -> None:
    other = write_study(tmp_path / "other", {"name": "one"})
    plans = [Plan(each, each.variants, GRID, where) for each in (study, other)]
    first, last = forecasts(plans, HERE)
    assert (first.place, first.places) == (1, 2)
    assert first.later_s == pytest.approx(other.budget_s)
    assert (last.place, last.places, last.later_s) == (2, 2, 0)


def test_an_unknown_cell_takes_as_long_as_the_others() -> None:
    pace = Pace({("one", "n=1"): 2.0, ("one", "n=2"): 4.0}, 1.0)
    assert pace.round_s({("one", "n=1"): 1.0, ("new", "n=1"): 1.0}) == 1 + 2 + 3


def _as_measured(
    where: Target, study: Study, variant: Variant, run: str, run_rounds: int
) -> Variant:
    """The variant with the cases of this run, each in the share of its rounds that measured it."""
    path = where.folder / study.name / f"{variant.name}.csv"
    samples = load_variant(path).samples if path.exists() else []
    rounds: dict[str, set[int]] = {}
    for sample in samples:
        if sample.run == run:
            rounds.setdefault(sample.case, set()).add(sample.round)
    cases = (
        replace(case, grid="default", every=round(run_rounds / len(rounds[case.id])))
        for case in variant.cases
        if case.id in rounds
    )
    return replace(variant, cases=tuple(cases))


def test_forecast_from_the_last_run_is_within_a_quarter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On committed results: a run of everything is forecast from the newest one."""
    machine = "nvidia-h200"
    monkeypatch.setattr(Provision, "unmet", lambda self, variant: None)
    where = Target(ROOT / "results", machine)
    forecasts, took = 0.0, 0.0
    for study in STUDIES.values():
        path = where.root / machine / study.name / f"{study.variants[0].name}.csv"
        runs = load_variant(path).run_provenance() if path.exists() else {}
        alike = [run for run in runs.values() if run["grid"] == "default"]
        if len(alike) < 2:
            continue
        names = {study.variants[0].name, *alike[1]["beside"]}
        run = alike[1]["run"]
        variants = tuple(
            _as_measured(where, study, v, run, alike[1]["rounds"])
            for v in study.variants
            if v.name in names
        )
        plan = Plan(study, variants, GRID, where)
        forecasts += alike[1]["rounds"] * round_seconds(plan, HERE)
        begin, end = (datetime.fromisoformat(alike[1][key]) for key in ("start", "end"))
        took += (end - begin).total_seconds()
    assert took > 60
    # When a tenth of it is over, what is left of the forecast and what is left in truth.
    assert forecasts - 0.1 * took == pytest.approx(0.9 * took, rel=0.25)
