"""The table of waits: its cause follows from the run's own times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.site.facts.study_facts import StudyFacts
from analysis.study.claims.kinds import Bounded
from kernels.pinning.page_tables import (
    LIMIT_S,
    LONGER,
    NOT_MEASURED,
    ONE_CHUNK,
    TABLES,
    TWO_CHUNKS,
    Wait,
)
from tests.repository import STUDIES
from tests.roots import make_inputs
from tests.synthetic import add_run, provenance_of, samples_of

PINNING = STUDIES["pinning"]
RUNS = ("2026-11-21T06:00:00Z", "2026-11-22T06:00:00Z")


@pytest.mark.parametrize(
    ("longest_s", "chunk_s", "cause"),
    [
        (0.006, 0.008, ""),
        (0.007, 0.0065, ONE_CHUNK),
        (0.02, 0.0065, ONE_CHUNK),
        (0.007, 0.004, TWO_CHUNKS),
        (0.01, 0.004, LONGER),
    ],
)
def test_cause_is_the_fewest_chunks_that_explain_the_wait(
    longest_s: float, chunk_s: float, cause: str
) -> None:
    assert Wait(longest_s, chunk_s).cause == cause


@pytest.fixture
def facts(tmp_path: Path) -> StudyFacts:
    """Two runs: 64 chunks of 256 MiB take 2 ms each in the first one, and 7 ms in the second."""
    chunks = PINNING.variant("chunks")
    for run, chunk_s, longest_s in zip(RUNS, (0.002, 0.007), (0.003, 0.014), strict=True):
        times = {"register_time": 64 * chunk_s, "unpin_time": 64 * chunk_s, "call_worst": longest_s}
        drawn = samples_of(PINNING, chunks, run=run, rounds=1)
        samples = [
            replace(one, metric=metric, value=times.get(metric, 0.001))
            for one in drawn
            if one.metric == "host_time"
            for metric in ("host_time", "unpin_worst", *times)
        ]
        provenance = provenance_of(PINNING, chunks, run=run)
        add_run(tmp_path / "results", "box", PINNING.name, chunks.name, samples, provenance)
    return StudyFacts(make_inputs(tmp_path, {"pinning": PINNING}), PINNING)


def test_table_compares_the_times_of_the_same_run(facts: StudyFacts) -> None:
    by_pinning, by_unpinning = TABLES["waits"](facts).rows
    assert by_pinning[5:] == ["1.5, 2.0", "1 of 2", f"1: {ONE_CHUNK}"]
    assert by_unpinning[6:] == ["2 of 2", ""]


def test_ways_for_a_large_memory_are_compared_over_all_runs(facts: StudyFacts) -> None:
    (chunks,) = TABLES["large"](facts).rows
    title = PINNING.variant("chunks").title
    assert chunks[1:] == [title, "2", "1.000 ms", "3.000 ms to 14.00 ms", "1.000 ms", "1 of 2"]


def test_limit_is_that_of_the_claim() -> None:
    claims = {claim.id: claim for claim in PINNING.claims}
    (test,) = claims["neighbours_wait_for_a_chunk"].tests
    assert isinstance(test, Bounded) and test.at_most == LIMIT_S


def test_without_results_a_sentence_says_so(tmp_path: Path) -> None:
    nothing = StudyFacts(make_inputs(tmp_path, {"pinning": PINNING}), PINNING)
    table = TABLES["waits"](nothing)
    assert not table.rows and table.empty_text == NOT_MEASURED
