"""The table of the longest calls: each run's cause follows from its own times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.site.facts.study_facts import StudyFacts
from analysis.study.claims.kinds import Bounded
from kernels.pinning.longest_calls import (
    END_GAP_S,
    IN_CHUNKS,
    IN_ONE,
    MORE_CHUNKS,
    NO_CORE,
    NOT_MEASURED,
    ONE_CHUNK,
    SHORT,
    SLOW_ALONE,
    TOUCHING,
    UNKNOWN,
    LongestCall,
)
from kernels.pinning.page_tables import TABLES
from tests.repository import STUDIES
from tests.roots import make_inputs
from tests.synthetic import add_run, provenance_of, samples_of

PINNING = STUDIES["pinning"]
TIMED = PINNING.variant("timed_chunks")
LONG = LongestCall(
    seconds=0.01,
    alone_s=0.0002,
    chunk_s=0.009,
    in_chunks=1.0,
    in_one=0.9,
    end_gap_s=0.00005,
    touching=0.0,
    queued=0.0,
)


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (LONG, ONE_CHUNK),
        (replace(LONG, seconds=0.006), SHORT),
        (replace(LONG, in_one=0.4), MORE_CHUNKS),
        (replace(LONG, in_one=0.4, end_gap_s=0.001), UNKNOWN),
        (replace(LONG, in_one=0.1, in_chunks=0.5), UNKNOWN),
        (replace(LONG, queued=0.6), NO_CORE),
        (replace(LONG, queued=None), ONE_CHUNK),
        (replace(LONG, alone_s=0.009), SLOW_ALONE),
        (replace(LONG, in_one=0.0, in_chunks=0.1, touching=0.9), TOUCHING),
    ],
)
def test_cause_is_the_first_that_explains_the_call(call: LongestCall, cause: str) -> None:
    assert call.cause == cause


def facts_of(root: Path, *runs: dict[str, float]) -> StudyFacts:
    """Facts of runs of these metrics, in the case of chunks of 64 MiB."""
    for day, values in enumerate(runs, start=20):
        run = f"2026-11-{day}T06:00:00Z"
        samples = [
            replace(one, metric=metric, unit=PINNING.units[metric], value=value)
            for one in samples_of(PINNING, TIMED, run=run, rounds=1)
            if one.metric == "host_time"
            for metric, value in {"host_time": 0.8, **values}.items()
        ]
        provenance = provenance_of(PINNING, TIMED, run=run)
        add_run(root / "results", "box", PINNING.name, TIMED.name, samples, provenance)
    return StudyFacts(make_inputs(root, {"pinning": PINNING}), PINNING)


def metrics(prefix: str, chunk: str, call: LongestCall) -> dict[str, float]:
    found = {
        prefix: call.seconds,
        "alone_worst": call.alone_s,
        f"chunk_{chunk}_worst": call.chunk_s,
        f"{prefix}_in_chunks": call.in_chunks,
        f"{prefix}_in_one": call.in_one,
        f"{prefix}_end_gap": call.end_gap_s,
    }
    if prefix == "call_worst":
        found[f"{prefix}_touching"] = call.touching
    if call.queued is not None:
        found[f"{prefix}_queued"] = call.queued
    return found


def test_each_run_has_a_row_of_its_own_times(tmp_path: Path) -> None:
    long = replace(LONG, in_one=0.875)
    short = replace(LONG, seconds=0.002, in_chunks=0.625, in_one=0.5, touching=0.125)
    facts = facts_of(
        tmp_path,
        metrics("call_worst", "register", long) | metrics("unpin_worst", "unregister", short),
        metrics("call_worst", "register", short) | metrics("unpin_worst", "unregister", short),
    )
    rows = [row[1:] for row in TABLES["longest_calls"](facts).rows if row[1] == "64 MiB"]
    assert [row[:3] for row in rows] == [
        ["64 MiB", "pinning", "10.00 ms"],
        ["64 MiB", "pinning", "2.000 ms"],
        ["64 MiB", "unpinning", "2.000 ms"],
        ["64 MiB", "unpinning", "2.000 ms"],
    ]
    assert rows[0][5:9] == ["88 %", "12 %", "0.0 %", "0.0 %"]
    assert rows[1][5:9] == ["50 %", "12 %", "12 %", "25 %"]
    assert [row[-1] for row in rows] == [ONE_CHUNK, SHORT, SHORT, SHORT]


def test_waits_that_the_system_does_not_count_are_named(tmp_path: Path) -> None:
    uncounted = replace(LONG, queued=None)
    facts = facts_of(tmp_path, metrics("call_worst", "register", uncounted))
    (row, *_) = TABLES["longest_calls"](facts).rows
    assert "not counted" in row and row[-1] == ONE_CHUNK


def test_a_run_without_chunks_has_no_row(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, {"call_worst": 0.01})
    assert not TABLES["longest_calls"](facts).rows


def test_without_results_a_sentence_says_so(tmp_path: Path) -> None:
    table = TABLES["longest_calls"](
        StudyFacts(make_inputs(tmp_path, {"pinning": PINNING}), PINNING)
    )
    assert not table.rows and table.empty_text == NOT_MEASURED


@pytest.mark.parametrize(
    ("claim", "bound", "expected"),
    [
        ("longest_call_waits_for_one_chunk", "at_least", IN_ONE),
        ("longest_call_waits_for_chunks", "at_least", IN_CHUNKS),
        ("longest_call_ends_with_a_chunk", "at_most", END_GAP_S),
    ],
)
def test_thresholds_are_those_of_the_claims(claim: str, bound: str, expected: float) -> None:
    (found,) = (one for one in PINNING.claims if one.id == claim)
    for test in found.tests:
        assert isinstance(test, Bounded) and getattr(test, bound) == expected
