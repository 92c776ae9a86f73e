"""Findings of a study measured on several machines: the machine that a finding quotes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.site.facts.findings import claim_result, findings
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Study
from analysis.study.claims.verdicts import FAILS, HOLDS
from tests.roots import make_inputs, settled
from tests.study.claims.studies import NEW, OLD, SECONDS, SPEEDUP, measure, write_study
from tests.synthetic import files_of, make_stale

FINDING = {"verdict": HOLDS, "headline": "One is {measured} as fast."}
CLAIM = {"id": "speed", "says": "One is faster.", "test": SPEEDUP, "finding": FINDING}
PAIR = {"slow": 8e-3, "fast": 2e-3}


def facts_of(
    root: Path, study: Study, change: Callable[[Inputs], Inputs] = lambda inputs: inputs
) -> StudyFacts:
    return StudyFacts(change(make_inputs(root, {study.name: study})), study)


def test_machines_come_by_hosts_of_fresh_figures_then_runs_then_the_newest_run(
    tmp_path: Path,
) -> None:
    study = write_study(tmp_path, CLAIM)
    results = tmp_path / "results"
    measure(results, study, machine="a-stale", run=NEW)
    make_stale(files_of(results, "a-stale", study.name)[0])
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
    make_stale(files_of(results, "more", study.name)[0])
    ((_, shown),) = findings(facts_of(tmp_path, study))
    assert shown.row.machine == "few"


def test_the_result_of_a_claim_is_that_of_the_machine_with_most_evidence(tmp_path: Path) -> None:
    study = write_study(tmp_path, CLAIM)
    assert claim_result(facts_of(tmp_path, study), study.claims[0]) is None
    measure(tmp_path / "results", study, PAIR | {"wide": 2e-3}, machine="more", run=OLD)
    measure(tmp_path / "results", study, PAIR, machine="few", run=NEW)
    result = claim_result(facts_of(tmp_path, study), study.claims[0])
    assert result is not None and (result.row.machine, result.row.verdict) == ("more", HOLDS)


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
