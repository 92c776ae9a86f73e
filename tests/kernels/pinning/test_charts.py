"""Charts of the pinning study, from synthetic results."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant
from kernels.pinning.charts import CALLS, COMPARED, WAITS, calls, charts, chunk_sizes, waits
from tests.charted import assert_page_is_drawn, charted
from tests.kernels.pinning.fake import PINNING

OWN = {"waits", "calls", "parts", "chunk_sizes"}


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """Pinning at 40 GB/s, and waits for a chunk of 64 GB/s."""
    del variant
    if metric == "host_time":
        return case.payload_bytes / 40e9
    return int(case.values.get("chunk_mib", 256)) * 2**20 / 64e9


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    return charted(PINNING, tmp_path_factory.mktemp("charts"), plausible, "full")


def test_every_chart_of_the_page_is_there(facts: StudyFacts, tmp_path: Path) -> None:
    assert_page_is_drawn(facts, OWN, tmp_path, but={"parts"})  # parts are not made up


def test_what_is_not_measured_draws_no_chart(facts: StudyFacts) -> None:
    nothing = facts.inputs.with_tables(summary=facts.inputs.tables["summary"][:0])
    assert set(charts(StudyFacts(nothing, PINNING)).values()) == {None}


def test_waits_are_those_of_usual_chunks_by_size(facts: StudyFacts) -> None:
    rows = waits(facts)
    assert set(rows["size"]) == {"1 GiB", "16 GiB"}
    assert set(rows["what"]) == set(WAITS.values())
    assert set(rows["variant"]) == {v.name for v in PINNING.variants} - {"chunks_again"}
    assert not rows.duplicated(["variant", "size", "what"]).any()


def test_calls_are_those_of_both_neighbours(facts: StudyFacts) -> None:
    rows = calls(facts)
    for name in ("another process", "another thread"):
        found = rows[rows["neighbour"] == name]
        assert set(found["call"]) == set(CALLS.values())
        assert set(found["variant"]) == set(COMPARED)
        assert not found.duplicated(["call", "variant", "what"]).any()


def test_chunk_sizes_include_the_usual_one(facts: StudyFacts) -> None:
    rows = chunk_sizes(facts)
    assert rows["chunk_mib"].unique().tolist() == [16, 64, 256, 1024]
    longest = rows[rows["what"] == "longest call"].set_index("chunk_mib")["seconds"]
    assert longest[1024] / longest[256] == pytest.approx(4, rel=0.05)
