"""Claims on pages: the machine that is quoted, and words where figures do not decide."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from analysis.site.facts.claims import UNDECIDED, Verdicts, judges_phrase
from analysis.site.facts.journeys import claim_result, machines_by_evidence
from analysis.site.facts.rows import ClaimPartRow, ClaimRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Study
from analysis.study.claims.verdicts import AFTERWARDS, BEFORE, FAILS, HOLDS, NOT_TESTED
from tests.roots import make_inputs
from tests.study.claims.studies import NEW, OLD, SPEEDUP, measure, write_study
from tests.synthetic import COPY, files_of, make_stale

CLAIM = {"id": "speed", "says": "One is faster.", "test": SPEEDUP}
PAIR = {"slow": 8e-3, "fast": 2e-3}
UNKNOWN = math.nan
PLACE = (COPY.name, "it", "box")


def facts_of(root: Path, study: Study) -> StudyFacts:
    return StudyFacts(make_inputs(root, {study.name: study}), study)


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
    table = facts.inputs.tables["summary"]
    more_hosts = table["hosts"].mask(table["machine"] == "d-twice", 4)
    inputs = facts.inputs.with_tables(summary=table.assign(hosts=more_hosts))
    assert machines_by_evidence(StudyFacts(inputs, study))[:2] == ["d-twice", "e-all"]


def test_the_result_of_a_claim_is_that_of_the_machine_with_most_evidence(tmp_path: Path) -> None:
    study = write_study(tmp_path, CLAIM)
    assert claim_result(facts_of(tmp_path, study), study.claims[0]) is None
    measure(tmp_path / "results", study, PAIR | {"wide": 2e-3}, machine="more", run=OLD)
    measure(tmp_path / "results", study, PAIR, machine="few", run=NEW)
    result = claim_result(facts_of(tmp_path, study), study.claims[0])
    assert result is not None and (result.row.machine, result.row.verdict) == ("more", HOLDS)
    assert result.write(result.figures.measured).startswith("4.0")
    assert result.few == "in 1 run on 1 host" and result.interval() == ""


@pytest.mark.parametrize(
    ("judged", "verdict", "shown"),
    [
        ((1.0, 2.0), NOT_TESTED, UNDECIDED),
        ((1.0, UNKNOWN), NOT_TESTED, NOT_TESTED),
        ((1.0, 2.0), FAILS, FAILS),
    ],
)
def test_claim_is_undecided_if_judging_runs_measured_all_parts(
    judged: tuple[float, ...], verdict: str, shown: str
) -> None:
    parts = [
        ClaimPartRow(
            *(*PLACE, number, "", NOT_TESTED, "", UNKNOWN, 1.0, UNKNOWN, UNKNOWN, "1", ""),
            judged=one,
        )
        for number, one in enumerate(judged, start=1)
    ]
    row = ClaimRow(*PLACE, verdict, "", *(UNKNOWN,) * 4, "1", "")
    claims, of_claim = pd.DataFrame([asdict(row)]), pd.DataFrame([*map(asdict, parts)])
    inputs = SimpleNamespace(tables={"claims": claims, "claim_parts": of_claim})
    assert Verdicts(cast(Any, inputs), COPY).shown(row) == shown


@pytest.mark.parametrize(
    ("bound", "runs", "judging", "said"),
    [
        (BEFORE, 1, 0, "one run, made before the threshold was fixed"),
        (BEFORE, 2, 0, "2 runs, made before the threshold was fixed"),
        (BEFORE, 7, 5, "verdict from the 5 of 7 runs made after we fixed the threshold"),
        (BEFORE, 5, 5, ""),
        (AFTERWARDS, 5, 0, ""),
    ],
)
def test_runs_older_than_the_threshold_are_counted(
    bound: str, runs: int, judging: int, said: str
) -> None:
    row = ClaimRow(*PLACE, FAILS, "", *(UNKNOWN,) * 4, "1", "")
    counted = {"bound": bound, "runs": runs, "judging": judging}
    assert judges_phrase(ClaimRow(**{**asdict(row), **counted})) == said
