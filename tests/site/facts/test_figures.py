"""Figures and points: the runs behind them, rates and shares, and published figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysis.results.store.runs import KEPT_RUNS
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.rows import RUN_SEPARATOR
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import make_inputs, settled
from tests.synthetic import COPY, add_run, name_of, provenance_of, samples_of

STEP = COPY.variant("bytewise")
CASE = COPY.shown_case(STEP)
METRIC = COPY.metrics_for(STEP)[0]


class Run(NamedTuple):
    """A run on `host`, perhaps of the current code, perhaps with the shown case; `seconds` identify
    it."""

    host: str
    is_fresh: bool = True
    has_case: bool = True
    seconds: float = 1.0

    @staticmethod
    def named(number: int) -> str:
        return f"2026-01-{number + 1:02}T00:00:00Z"


RUNS = st.lists(
    st.builds(Run, st.sampled_from("abc"), st.booleans(), st.booleans()),
    min_size=1,
    max_size=KEPT_RUNS,
)


def facts_of(root: Path, runs: Sequence[Run]) -> StudyFacts:
    """Facts of a machine `box` with these runs of the step, oldest first."""
    results = root / "results"
    for number, one in enumerate(runs):
        samples = [
            replace(sample, value=one.seconds)
            for sample in samples_of(COPY, STEP, run=Run.named(number), rounds=2)
            if one.has_case or sample.case != CASE.id
        ]
        provenance = provenance_of(COPY, STEP, run=Run.named(number))
        provenance["machine"] |= {"host": one.host * 8}
        if not one.is_fresh:
            provenance["source_sha256"] = "0" * 64
        add_run(results, "box", COPY.name, STEP.name, samples, provenance)
    return StudyFacts(make_inputs(root, {COPY.name: COPY}), COPY)


@settings(max_examples=10)
@given(RUNS)
@example([Run("a"), Run("b"), Run("a"), Run("b", is_fresh=False)])
@example([Run("a"), Run("b"), Run("a")])
@example([Run("a"), Run("a"), Run("a")])
@example([Run("b"), Run("a", has_case=False)])
def test_only_fresh_runs_of_the_case_are_shown(runs: list[Run]) -> None:
    runs = [one._replace(seconds=float(2**number)) for number, one in enumerate(runs)]
    named = {Run.named(number): one for number, one in enumerate(runs) if one.has_case}
    used = {name: one for name, one in named.items() if one.is_fresh}
    used = used or dict(list(named.items())[-1:])
    with TemporaryDirectory() as folder:
        facts = facts_of(Path(folder), runs)
        row = facts.time("box", STEP)
        if not used:
            assert row is None
            return
        assert row is not None
        times = [one.seconds for one in used.values()]
        newest = list(used)[-1]
        is_known = not row.stale and len(used) == sum(one.is_fresh for one in runs)
        assert row.median == median(times)
        assert (row.runs, row.run, bool(row.stale)) == (
            len(used),
            name_of(newest, used[newest].host * 8),
            not used[newest].is_fresh,
        )
        assert row.hosts == len({one.host for one in used.values()})
        by_run = [(run.begun, seconds) for run, seconds in facts.by_run(row)]
        assert by_run == (list(zip(used, times, strict=True)) if is_known else [])


def test_points_have_the_rates_of_their_runs(tmp_path: Path) -> None:
    runs = [Run("a", seconds=2.0), Run("b", seconds=1.0), Run("a", seconds=4.0)]
    points = facts_of(tmp_path, runs).points
    drawn = points[(points["variant"] == STEP.name) & (points["metric"] == METRIC)]
    (point,) = drawn[drawn["case"] == CASE.id].to_dict("records")
    rates = [float(rate) for rate in point["by_run"].split(RUN_SEPARATOR)]
    assert rates == pytest.approx([CASE.payload_bytes / run.seconds / 1e9 for run in runs])
    assert point["rate"] == pytest.approx(rates[0])
    assert (point["runs"], point["hosts"]) == (3, 2)


LONGER, OTHER = COPY.variant("longer"), COPY.variant("in_flight")


@pytest.mark.parametrize(
    ("runs", "middle"), [([[1.2] * 3, [1.5] * 3, [1.35] * 3], 1.35), ([[1.1] * 8], 1.1)]
)
def test_the_slower_by_time_may_be_the_faster_by_rate(
    tmp_path: Path, runs: Sequence[Sequence[float]], middle: float
) -> None:
    """`runs` are ratios of rates by run and round. All runs decide, whatever the interval."""
    for day, rounds in enumerate(runs, start=1):
        run = f"2026-01-0{day}T00:00:00Z"
        for variant in (OTHER, LONGER):
            samples = samples_of(
                COPY,
                variant,
                run=run,
                rounds=len(rounds),
                noise=0,
                seconds=lambda _, case, __: case.payload_bytes / 1e9,
            )
            if variant == LONGER:
                samples = [replace(s, value=(s.value or 0) / rounds[s.round]) for s in samples]
            provenance = provenance_of(COPY, variant, run=run)
            add_run(tmp_path / "results", "box", COPY.name, variant.name, samples, provenance)
    figures = StudyFacts(make_inputs(tmp_path, {COPY.name: COPY}), COPY).figures
    row = figures.comparison("box", LONGER, OTHER)
    assert row is not None
    assert row.verdict == "faster" and row.ratio == pytest.approx(middle)
    assert [*map(float, row.by_run.split("|"))] == pytest.approx([rates[0] for rates in runs])


def test_points_show_the_time_each_variant_is_compared_by(two_machines: Inputs) -> None:
    facts = StudyFacts(settled(two_machines), two_machines.studies["copy"])
    points = facts.points
    shown = points[(points["is_default"] == 1) & (points["state"] == "measured")]
    metrics = shown.groupby("variant")["metric"].agg(set)
    for variant in facts.study.variants:
        assert metrics[variant.name] == {"host_time" if variant.host_work else "gpu_time"}
    rate = shown["payload_bytes"] / shown["seconds"].astype(float) / 1e9
    assert shown["rate"].astype(float).to_numpy() == pytest.approx(rate.to_numpy(dtype=float))
    assert (shown["rate_low"] <= shown["rate"]).all()
    assert (shown["rate"] <= shown["rate_high"]).all()
    published = points[points["state"] == "published"]
    assert set(published["machine"]) == {"box", "other-box"}
    assert published["machine"].value_counts().nunique() == 1


def test_a_step_has_its_share_of_the_fastest_ceiling(two_machines: Inputs) -> None:
    points = StudyFacts(two_machines, two_machines.studies["copy"]).points
    compared = points[(points["state"] == "measured") & (points["role"] == "step")]
    place = ["machine", "case", "metric"]
    ceilings = points[points["role"] == "ceiling"].groupby(place)["rate"].max()
    expected = (
        compared["rate"]
        / ceilings.loc[list(zip(*(compared[k] for k in place), strict=True))].to_numpy()
    )
    assert compared["share"].to_numpy() == pytest.approx(expected.to_numpy(), rel=0.02)
    assert points.loc[points["role"] == "ceiling", "share"].isna().all()


def test_no_interval_exceeds_the_rate_of_the_ceiling(two_machines: Inputs) -> None:
    inputs = settled(two_machines)
    summary = inputs.tables["summary"]
    wide = inputs.with_tables(summary=summary.assign(ci_low=summary["ci_low"] / 100))
    points = StudyFacts(wide, two_machines.studies["copy"]).points
    cut = points[points["note"] == "interval ends at the ceiling's rate"]
    assert not cut.empty and (cut["share"] < 1).all()
    assert (cut["rate_high"] * cut["share"]).to_numpy() == pytest.approx(cut["rate"].to_numpy())
