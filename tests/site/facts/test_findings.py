"""Findings of a study measured on several machines: the machine that a finding quotes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.site.facts.findings import ClaimResult, Slower, _distance, findings, largest_surprise
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.rows import ClaimRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Study, Variant, discover
from analysis.study.claims.verdicts import FAILS, HOLDS
from tests.roots import make_inputs, make_root, settled
from tests.study.claims.studies import FEW_SMS, NEW, OLD, SECONDS, SPEEDUP, measure, write_study
from tests.synthetic import write_machine

FINDING = {"verdict": HOLDS, "headline": "One is {measured} as fast."}
CLAIM = {"id": "speed", "says": "One is faster.", "test": SPEEDUP, "finding": FINDING}
COUNTS_PER = {
    "kind": "counts_per",
    "of": "fast",
    "counter": "a__b.sum",
    "per": "a__c.sum",
    "at_least": 16,
}
PAIR = {"slow": 8e-3, "fast": 2e-3}


def facts_of(
    root: Path, study: Study, change: Callable[[Inputs], Inputs] = lambda inputs: inputs
) -> StudyFacts:
    return StudyFacts(change(make_inputs(root, {study.name: study})), study)


def make_stale(results: Path, study: Study, machine: str) -> None:
    for path in (results / machine / study.name).glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"source_sha256": "0" * 64}))


def test_machines_come_by_hosts_of_fresh_figures_then_runs_then_the_newest_run(
    tmp_path: Path,
) -> None:
    study = write_study(tmp_path, CLAIM)
    results = tmp_path / "results"
    measure(results, study, machine="a-stale", run=NEW)
    make_stale(results, study, "a-stale")
    measure(results, study, PAIR, machine="b-old", run=OLD)
    measure(results, study, PAIR, machine="c-new", run=NEW)
    for run in (OLD, "2026-01-01T12:00:00Z"):
        measure(results, study, PAIR, machine="d-twice", run=run)
    measure(results, study, machine="e-all", run=OLD)
    facts = facts_of(tmp_path, study)
    assert machines_by_evidence(facts) == ["e-all", "d-twice", "c-new", "b-old", "a-stale"]
    for hosts, ordered in (
        (2, ["e-all", "d-twice", "c-new", "b-old", "a-stale"]),  # 4 figures, of which 2 on `hosts`
        (4, ["d-twice", "e-all", "c-new", "b-old", "a-stale"]),
    ):
        table = facts.inputs.tables["summary"]
        counts = table["hosts"].mask(table["machine"] == "d-twice", hosts)
        inputs = facts.inputs.with_tables(summary=table.assign(hosts=counts))
        assert machines_by_evidence(StudyFacts(inputs, study)) == ordered


def test_finding_quotes_the_machine_with_its_verdict_and_most_evidence(
    tmp_path: Path,
) -> None:
    study = write_study(tmp_path, CLAIM)
    results = tmp_path / "results"
    measure(results, study, SECONDS | {"fast": 16e-3}, machine="all", run=OLD)
    measure(results, study, PAIR | {"fast": 4e-3, "wide": 2e-3}, machine="more", run=OLD)
    measure(results, study, PAIR, machine="few", run=NEW)
    ((finding, shown),) = findings(facts_of(tmp_path, study))
    assert finding is study.claims[0].finding
    assert (shown.row.machine, shown.row.verdict) == ("more", HOLDS)
    assert shown.write(shown.figures.measured).startswith("2.0")
    assert [(row.machine, row.verdict) for row in shown.others] == [("all", FAILS), ("few", HOLDS)]
    make_stale(results, study, "more")
    ((_, shown),) = findings(facts_of(tmp_path, study))
    assert shown.row.machine == "few"


@pytest.mark.parametrize(
    ("low", "high", "distance"),
    [(4.0, 16.0, math.log(2)), (0.25, 0.5, math.log(4)), (1.0, 3.0, 0.0), (math.nan, math.nan, 0)],
)
def test_distance_from_a_published_figure_is_that_of_the_nearer_end(
    tmp_path: Path, low: float, high: float, distance: float
) -> None:
    (claim,) = write_study(tmp_path, CLAIM).claims
    row = ClaimRow(
        study="copy", claim="speed", machine="box", verdict=FAILS, reason="", published=2.0,
        measured=math.sqrt(low * high), ci_low=low, ci_high=high, unit="1", case="",
    )  # fmt: skip
    assert _distance(ClaimResult(claim, row, 1, row)) == pytest.approx(distance)


@pytest.mark.parametrize(
    ("test", "counted", "bound"),
    [
        (FEW_SMS | {"at_most": 0.5}, "SMs", "at most 0.5"),
        (FEW_SMS | {"metric": "gpu_time", "at_most": 0.5}, "", "at most 500.0 ms"),
        (SPEEDUP, "", "at least 1.000×"),
        (COUNTS_PER, "fast a__b.sum per a__c.sum", "at least 16"),
    ],
)
def test_count_names_its_unit_and_has_a_bare_bound(
    tmp_path: Path, test: dict[str, Any], counted: str, bound: str
) -> None:
    study = write_study(tmp_path, CLAIM | {"test": test, "finding": FINDING | {"verdict": FAILS}})
    (claim,) = study.claims
    unit = claim.tests[0].figure_unit(study.units)
    row = ClaimRow(
        study="copy", claim="speed", machine="box", verdict=FAILS, reason="", published=math.nan,
        measured=12.0, ci_low=12.0, ci_high=12.0, unit=unit, case="",
    )  # fmt: skip
    shown = ClaimResult(claim, row, 1, row)
    assert (shown.counted(study), shown.bound()) == (counted, bound)


def test_without_surprising_claims_the_slowest_step_is_the_surprise(tmp_path: Path) -> None:
    study = discover(make_root(tmp_path))["copy"]
    steps = study.with_role("step")[:3]
    slower = {step.name: factor for step, factor in zip(steps, (1.0, 4.0, 6.0), strict=True)}

    def seconds(variant: Variant, case: Case, metric: str) -> float:
        return 1e-3 * slower[variant.name]

    write_machine(tmp_path / "results", "box", study, variants=steps, seconds=seconds)
    assert largest_surprise(facts_of(tmp_path, replace(study, claims=())), "box") is None
    facts = facts_of(tmp_path, replace(study, claims=()), settled)
    found = largest_surprise(facts, "box")
    assert isinstance(found, Slower) and found.step == steps[1]  # 4 times as long, then 1.5


def test_an_inverse_finding_has_one_over_the_figure_and_its_interval(tmp_path: Path) -> None:
    shown = []
    for place, change in enumerate(({}, {"inverse": True})):
        study = write_study(tmp_path / str(place), CLAIM | {"finding": FINDING | change})
        measure(tmp_path / str(place) / "results", study, machine="m", run=NEW)
        ((_, result),) = findings(facts_of(tmp_path / str(place), study, settled))
        shown.append(result.figures)
    plain, inverse = shown
    assert inverse.measured == pytest.approx(1 / plain.measured)
    assert (inverse.ci_low, inverse.ci_high) == (1 / plain.ci_high, 1 / plain.ci_low)
    assert inverse.ci_low < inverse.ci_high
