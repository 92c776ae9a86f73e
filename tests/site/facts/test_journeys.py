"""The machines of a study by evidence."""

from __future__ import annotations

from pathlib import Path

from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import make_inputs
from tests.study.claims.studies import NEW, OLD, SPEEDUP, measure, write_study
from tests.synthetic import files_of, make_stale

CLAIM = {"id": "speed", "says": "One is faster.", "test": SPEEDUP}
PAIR = {"slow": 8e-3, "fast": 2e-3}


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
    facts = StudyFacts(make_inputs(tmp_path, {study.name: study}), study)
    assert machines_by_evidence(facts) == ["e-all", "d-twice", "c-new", "b-old", "a-stale"]
    table = facts.inputs.tables["summary"]
    more_hosts = table["hosts"].mask(table["machine"] == "d-twice", 4)
    inputs = facts.inputs.with_tables(summary=table.assign(hosts=more_hosts))
    assert machines_by_evidence(StudyFacts(inputs, study))[:2] == ["d-twice", "e-all"]
