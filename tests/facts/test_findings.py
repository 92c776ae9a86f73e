"""Findings of a study that several machines have measured: which of them tells one."""

from __future__ import annotations

import json
from pathlib import Path

from analysis.claims.verdicts import FAILS, HOLDS
from analysis.facts.findings import findings
from analysis.facts.journeys import machines_by_evidence
from analysis.facts.study_facts import StudyFacts
from analysis.study import Study
from tests.claims.studies import NEW, OLD, SECONDS, SPEEDUP, measure, write_study
from tests.roots import make_inputs

FINDING = {"verdict": HOLDS, "headline": "One is {measured} as fast."}
CLAIM = {"id": "speed", "says": "One is faster.", "test": SPEEDUP, "finding": FINDING}
PAIR = {"slow": 8e-3, "fast": 2e-3}


def facts_of(root: Path, study: Study) -> StudyFacts:
    return StudyFacts(make_inputs(root, {study.name: study}), study)


def make_stale(results: Path, study: Study, machine: str) -> None:
    for path in (results / machine / study.name).glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"source_sha256": "0" * 64}))


def test_machines_come_by_fresh_variants_then_runs_then_the_newest_run(tmp_path: Path) -> None:
    study = write_study(tmp_path, CLAIM)
    results = tmp_path / "results"
    measure(results, study, machine="a-stale", run=NEW)
    make_stale(results, study, "a-stale")
    measure(results, study, PAIR, machine="b-old", run=OLD)
    measure(results, study, PAIR, machine="c-new", run=NEW)
    for run in (OLD, "2026-01-01T12:00:00Z"):
        measure(results, study, PAIR, machine="d-twice", run=run)
    measure(results, study, machine="e-all", run=OLD)
    ordered = ["e-all", "d-twice", "c-new", "b-old", "a-stale"]
    assert machines_by_evidence(facts_of(tmp_path, study)) == ordered


def test_a_finding_is_told_by_the_machine_of_most_evidence_that_has_its_verdict(
    tmp_path: Path,
) -> None:
    study = write_study(tmp_path, CLAIM)
    results = tmp_path / "results"
    measure(results, study, SECONDS | {"fast": 16e-3}, machine="all", run=OLD)
    measure(results, study, PAIR | {"fast": 4e-3, "wide": 2e-3}, machine="more", run=OLD)
    measure(results, study, PAIR, machine="few", run=NEW)
    ((finding, told),) = findings(facts_of(tmp_path, study))
    assert finding is study.claims[0].finding
    assert (told.row.machine, told.row.verdict) == ("more", HOLDS)
    assert told.write(told.figures.measured).startswith("2.0")
    assert [(row.machine, row.verdict) for row in told.others] == [("all", FAILS), ("few", HOLDS)]
    make_stale(results, study, "more")
    ((_, told),) = findings(facts_of(tmp_path, study))
    assert told.row.machine == "few"
