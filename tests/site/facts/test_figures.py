"""Figures and points: rates and shares, verdicts on rates, intervals, and published figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from analysis.results.tables.rows import RUN_SEPARATOR
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import make_inputs, settled
from tests.synthetic import COPY, at_rates, write_machine

LONGER, OTHER = map(COPY.variant, ("longer", "in_flight"))


@pytest.mark.parametrize(("rates", "middle"), [([1.2, 1.5, 1.35], 1.35), ([1.1], 1.1)])
def test_the_slower_by_time_may_be_the_faster_by_rate(
    tmp_path: Path, rates: Sequence[float], middle: float
) -> None:
    """LONGER delivers more bytes than OTHER. All runs decide, whatever the interval."""
    for day, rate in enumerate(rates, start=1):
        times: Any = {"seconds": at_rates({LONGER.name: rate}, 1.0), "noise": 0}
        run, results = f"2026-01-0{day}T00:00:00Z", tmp_path / "results"
        write_machine(results, "box", COPY, variants=[OTHER, LONGER], run=run, **times)
    facts = StudyFacts(make_inputs(tmp_path, {COPY.name: COPY}), COPY)
    row = facts.comparison("box", LONGER, OTHER)
    assert row is not None
    assert row.verdict == "faster" and row.ratio == pytest.approx(middle)
    assert [*map(float, row.by_run.split(RUN_SEPARATOR))] == pytest.approx(rates)
    points = facts.points.query("is_default == 1 and variant == @LONGER.name")
    (point,) = points[points["case"] == COPY.shown_case(LONGER).id].to_dict("records")
    assert point["rate"] == pytest.approx(middle) and point["hosts"] == len(rates)


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
