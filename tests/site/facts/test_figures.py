"""Figures and points of a study: rates, shares, verdicts and intervals; and its machines: their
names, how they compare, and the order of their evidence."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.results.tables.rows import RUN_SEPARATOR
from analysis.site.facts.comparison import EQUAL, FASTER, SLOWER, UNCLEAR, machine_ratios
from analysis.site.facts.inputs import Inputs, machine_names
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import make_inputs, settled
from tests.study.claims.studies import NEW, OLD, SPEEDUP, measure, write_study
from tests.synthetic import COPY, at_rates, files_of, make_stale, write_machine

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


# Machines.

STEP = COPY.variant("bytewise")
STEADY = (0.999, 1.0, 1.001)


def inputs_of(root: Path, rates: Sequence[float]) -> Inputs:
    """Results of two machines: a run on a host of its own for each rate of the first step in GB/s,
    STEADY on `box`, `rates` on `other-box`."""
    for machine, of_machine in (("box", STEADY), ("other-box", rates)):
        for day, rate in enumerate(of_machine, start=1):
            times: Any = {"seconds": at_rates({STEP.name: rate}), "noise": 1e-5, "grid": "smoke"}
            run = f"2026-01-0{day}T00:00:00Z"
            write_machine(root / "results", machine, COPY, variants=[STEP], run=run, **times)
    return make_inputs(root, {COPY.name: COPY})


def ratios(inputs: Inputs) -> list[Any]:
    return [*machine_ratios([StudyFacts(inputs, COPY)], [("box", "other-box")]).itertuples()]


@pytest.mark.parametrize(
    ("rate", "spread", "verdict"),
    [
        (0.5, 1, FASTER),
        (2, 1, SLOWER),
        (1 / 1.04, 1, EQUAL),
        (1.0, 60, UNCLEAR),
        (1 / 1.2, 150, UNCLEAR),
    ],
)
def test_machines_are_compared_by_their_runs(
    tmp_path: Path, rate: float, spread: float, verdict: str
) -> None:
    rates = [rate / (1 + spread * (one - 1)) for one in STEADY]
    (one,) = ratios(inputs_of(tmp_path, rates))
    assert one.verdict == verdict and one.is_judged
    assert one.ratio == pytest.approx(1 / rate, rel=0.01) and one.low < one.ratio < one.high


def test_too_few_runs_give_no_verdict_and_stale_ones_no_ratio(tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, [0.5] * 3)
    summary = inputs.tables["summary"]
    is_other = summary["machine"] == "other-box"
    (one,) = ratios(inputs.with_tables(summary=summary.assign(hosts=3 - 2 * is_other)))
    assert (one.is_judged, one.verdict) == (False, UNCLEAR)
    assert one.ratio == pytest.approx(2, rel=0.01) and pd.isna(one.low) and pd.isna(one.high)
    assert ratios(inputs.with_tables(summary=summary.assign(stale=1 * is_other))) == []


CLAIM = {"id": "speed", "says": "One is faster.", "test": SPEEDUP}
PAIR = {"slow": 8e-3, "fast": 2e-3}


def test_machines_come_by_hosts_then_runs_then_the_newest_run(tmp_path: Path) -> None:
    study = write_study(tmp_path, CLAIM)
    results = tmp_path / "results"
    measure(results, study, machine="a-stale", run=NEW)
    make_stale(files_of(results, "a-stale", study.name)[0])
    measure(results, study, PAIR, machine="b-old", run=OLD)
    measure(results, study, PAIR, machine="c-new", run=NEW)
    for run in (OLD, "2026-01-01T12:00:00Z"):
        measure(results, study, PAIR, machine="d-twice", run=run)
    measure(results, study, machine="e-all", run=OLD)
    facts = StudyFacts(make_inputs(tmp_path, {study.name: study}), study)
    assert machines_by_evidence(facts) == ["e-all", "d-twice", "c-new", "b-old", "a-stale"]
    table = facts.inputs.tables["summary"]
    more_hosts = table["hosts"].mask(table["machine"] == "d-twice", 4)
    inputs = facts.inputs.with_tables(summary=table.assign(hosts=more_hosts))
    assert machines_by_evidence(StudyFacts(inputs, study))[:2] == ["d-twice", "e-all"]


H100, H200, ADA = "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA RTX 6000 Ada Generation"


@pytest.mark.parametrize(
    ("gpus", "names"),
    [
        # A name is the model of the GPU.
        ({"a": H100, "b": "NVIDIA A100-SXM4-80GB"}, ["H100", "A100"]),
        ({"box": "NVIDIA GeForce RTX 4090"}, ["GeForce RTX 4090"]),
        ({"box": (H200, 2), "other": H200}, ["2 × H200", "H200"]),
        ({"box": "Synthetic GPU", "none": None}, ["box", "none"]),
        # Text with a meaning in Markdown, HTML or a template.
        ({"box": "NVIDIA <b>H200</b>", "other": "NVIDIA {{ 7 }}"}, ["box", "other"]),
        # Longer names distinguish machines.
        ({"a": H100, "b": "NVIDIA H100 PCIe", "c": H200}, ["H100 80GB", "H100 PCIe", "H200"]),
        # An ambiguous name is used for none.
        ({"one": "NVIDIA RTX 6000", "other": ADA}, ["one", "RTX 6000 Ada"]),
        ({"a": H200, "b": H200}, ["a", "b"]),
        # No machine has the name of another machine's folder.
        ({"H200": None, "box": H200}, ["H200", "box"]),
    ],
)
def test_names_distinguish_machines(gpus: dict[str, Any], names: list[str]) -> None:
    described = {
        name: {"gpu": gpu[0], "gpus": gpu[1]} if isinstance(gpu, tuple) else {"gpu": gpu}
        for name, gpu in gpus.items()
    }
    assert [*machine_names(described).values()] == names
