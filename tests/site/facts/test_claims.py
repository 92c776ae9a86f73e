"""Claims on pages: the machines that are quoted, and words where figures do not decide."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from analysis.results.tables.rows import ClaimPartRow, ClaimRow
from analysis.site.facts.claims import UNDECIDED, Verdicts, judges_phrase
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.study_facts import StudyFacts
from analysis.study.claims.verdicts import AFTERWARDS, BEFORE, FAILS, NOT_TESTED
from tests.roots import make_inputs
from tests.study.claims.studies import NEW, OLD, SPEEDUP, measure, write_study
from tests.synthetic import COPY, files_of, make_stale

CLAIM = {"id": "speed", "says": "One is faster.", "test": SPEEDUP}
PAIR = {"slow": 8e-3, "fast": 2e-3}
UNKNOWN = math.nan
PLACE = (COPY.name, "it", "box")


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
        (BEFORE, 7, 5, "verdict from the 5 of 7 runs made after we fixed the threshold"),
        (BEFORE, 5, 5, ""),
        (AFTERWARDS, 5, 0, ""),
    ],
)
def test_runs_older_than_the_threshold_are_counted(
    bound: str, runs: int, judging: int, said: str
) -> None:
    counted: dict[str, Any] = {"bound": bound, "runs": runs, "judging": judging}
    row = ClaimRow(*PLACE, FAILS, "", *(UNKNOWN,) * 4, "1", "", **counted)
    assert judges_phrase(row) == said
