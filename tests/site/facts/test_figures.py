"""Figures and points: rates and shares, verdicts on rates, intervals, and published figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.results.tables.rows import RUN_SEPARATOR
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import make_inputs, settled
from tests.synthetic import COPY, add_run, provenance_of, samples_of

STEP, LONGER, OTHER = map(COPY.variant, ("bytewise", "longer", "in_flight"))
CASE = COPY.shown_case(STEP)


def facts_of(root: Path, name: str, runs: Sequence[Sequence[float]]) -> StudyFacts:
    """Facts of a machine `box` on which `name` has these rates in GB/s by run and round, and the
    variant OTHER 1 GB/s."""
    for day, rounds in enumerate(runs, start=1):
        run = f"2026-01-0{day}T00:00:00Z"
        for variant in (OTHER, COPY.variant(name)):
            made = samples_of(
                COPY,
                variant,
                run=run,
                rounds=len(rounds),
                noise=0,
                seconds=lambda _, case, __: case.payload_bytes / 1e9,
            )
            rates = rounds if variant.name == name else [1.0] * len(rounds)
            samples = [replace(s, value=(s.value or 0) / rates[s.round]) for s in made]
            provenance = provenance_of(COPY, variant, run=run)
            provenance["machine"] |= {"host": "ab"[day % 2] * 8}
            add_run(root / "results", "box", COPY.name, variant.name, samples, provenance)
    return StudyFacts(make_inputs(root, {COPY.name: COPY}), COPY)


def test_points_have_the_rates_of_their_runs(tmp_path: Path) -> None:
    points = facts_of(tmp_path, STEP.name, [[2.0], [1.0], [4.0]]).points
    drawn = points[(points["variant"] == STEP.name) & (points["is_default"] == 1)]
    (point,) = drawn[drawn["case"] == CASE.id].to_dict("records")
    rates = [float(rate) for rate in point["by_run"].split(RUN_SEPARATOR)]
    assert rates == pytest.approx([2, 1, 4]) and point["rate"] == pytest.approx(2)
    assert (point["runs"], point["hosts"]) == (3, 2)


@pytest.mark.parametrize(
    ("runs", "middle"), [([[1.2] * 3, [1.5] * 3, [1.35] * 3], 1.35), ([[1.1] * 8], 1.1)]
)
def test_the_slower_by_time_may_be_the_faster_by_rate(
    tmp_path: Path, runs: Sequence[Sequence[float]], middle: float
) -> None:
    """LONGER delivers more bytes than OTHER. All runs decide, whatever the interval."""
    row = facts_of(tmp_path, LONGER.name, runs).comparison("box", LONGER, OTHER)
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
    fastest = points[points["role"] == "ceiling"].groupby(place)["rate"].max()
    ceilings = fastest.loc[[*compared[place].itertuples(index=False, name=None)]]
    expected = compared["rate"].to_numpy() / ceilings.to_numpy()
    assert compared["share"].to_numpy() == pytest.approx(expected, rel=0.02)
    assert points.loc[points["role"] == "ceiling", "share"].isna().all()


def test_no_interval_exceeds_the_rate_of_the_ceiling(two_machines: Inputs) -> None:
    inputs = settled(two_machines)
    summary = inputs.tables["summary"]
    wide = inputs.with_tables(summary=summary.assign(ci_low=summary["ci_low"] / 100))
    points = StudyFacts(wide, two_machines.studies["copy"]).points
    cut = points[points["note"] == "interval ends at the ceiling's rate"]
    assert not cut.empty and (cut["share"] < 1).all()
    assert (cut["rate_high"] * cut["share"]).to_numpy() == pytest.approx(cut["rate"].to_numpy())
