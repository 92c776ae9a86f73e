"""Points: a time and a rate for each machine, variant and case, and published figures."""

from __future__ import annotations

import pytest

from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import settled


def test_points_show_the_time_each_variant_is_compared_by(two_machines: Inputs) -> None:
    facts = StudyFacts(settled(two_machines), two_machines.studies["copy"])
    points = facts.points
    shown = points[(points["is_default"] == 1) & (points["state"] == "measured")]
    metrics = shown.groupby("variant")["metric"].agg(set)
    for variant in facts.study.variants:
        assert metrics[variant.name] == {"host_time" if variant.host_work else "gpu_time"}
    rate = shown["payload_bytes"] / shown["seconds"].astype(float) / 1e9
    assert shown["rate"].astype(float).to_numpy() == pytest.approx(rate.to_numpy(dtype=float))
    assert (shown["rate_low"] <= shown["rate"]).all() and (
        shown["rate"] <= shown["rate_high"]
    ).all()


def test_published_figures_are_shown_beside_every_machine(two_machines: Inputs) -> None:
    points = StudyFacts(two_machines, two_machines.studies["copy"]).points
    published = points[points["state"] == "published"]
    assert published["machine"].value_counts().nunique() == 1
    assert set(published["machine"]) == {"box", "other-box"}


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
