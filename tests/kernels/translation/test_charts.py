"""Charts of the translation study, from synthetic results."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant
from kernels.translation.charts import charts, reads_of, rows_of
from tests.charted import assert_page_is_drawn, charted
from tests.kernels.translation.fake import TRANSLATION

OWN = {"reach", "latency", "kinds", "pools"}


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """Reads at 400 million a second of what is held, else 40; rows at 50 GB/s."""
    if "reads" not in case.values:
        return case.payload_bytes / 50e9
    entries = case.number("count") * min(case.number("stride_kib"), 64) // 64
    return case.number("reads") / (400e6 if entries <= 8192 else 40e6)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    return charted(TRANSLATION, tmp_path_factory.mktemp("charts"), plausible, "full")


def test_every_chart_of_the_page_is_there(facts: StudyFacts, tmp_path: Path) -> None:
    needing_more = {"model", "timeline"}  # a calibration, and a capture
    assert_page_is_drawn(facts, OWN, tmp_path, but=needing_more)


def test_what_is_not_measured_draws_no_chart(facts: StudyFacts) -> None:
    nothing = facts.inputs.with_tables(summary=facts.inputs.tables["summary"][:0])
    assert set(charts(StudyFacts(nothing, TRANSLATION)).values()) == {None}


def test_reads_are_drawn_by_their_rate_and_the_distance_of_their_addresses(
    facts: StudyFacts,
) -> None:
    rows = reads_of(facts.points, "independent_lines")
    assert rows["addresses"].unique().tolist() == [
        *("4 KiB", "16 KiB", "64 KiB", "64 KiB, ascending", "512 KiB", "2 MiB")
    ]
    held = rows[(rows["addresses"] == "4 KiB") & (rows["case_count"] == 131072)]
    missed = rows[(rows["addresses"] == "64 KiB") & (rows["case_count"] == 131072)]
    assert held["reads_per_us"].tolist() == pytest.approx([400], rel=0.01)
    assert missed["ns"].tolist() == pytest.approx([25], rel=0.01)


def test_kinds_of_memory_are_drawn_by_themselves(facts: StudyFacts) -> None:
    rows = reads_of(facts.points, "independent_lines", by_memory=True)
    assert rows["case_memory"].nunique() == 7
    assert rows["case_count"].nunique() > 1


def test_gathers_are_drawn_over_the_size_of_the_pool(facts: StudyFacts) -> None:
    rows = rows_of(facts.points)
    assert set(rows["hints"]) == {"plain", "streaming hints"}
    assert rows["pool_gib"].max() == 40
    assert rows["row"].unique().tolist() == [
        *("128 B", "256 B", "512 B", "656 B", "1024 B", "4096 B")
    ]
    assert rows["rate"].dropna().tolist() == pytest.approx([50] * len(rows), rel=0.01)
