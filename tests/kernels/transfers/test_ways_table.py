"""The table of all ways by size: the first call, rates, and the caller's cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from analysis.site.facts.study_facts import StudyFacts
from kernels.transfers.ways_table import FIRST, NOT_MEASURED, WHERE, ways_table
from tests.kernels.transfers.test_widgets import TRANSFERS
from tests.roots import make_inputs, settled

CALL = f"{FIRST}, on box"


def cells_of(facts: StudyFacts) -> dict[tuple[str, str, str], dict[str, str]]:
    """The rows as text, by layout, size and number of pieces."""
    table = ways_table(facts)
    rows = [dict(zip(table.columns, map(_text, row), strict=True)) for row in table.rows]
    return {(row["pieces"], row["size"], row["number"]): row for row in rows}


def _text(cell: object) -> str:
    return cell.striptags() if hasattr(cell, "striptags") else str(cell)


def test_one_block_comes_first_and_scattered_pieces_last(facts: StudyFacts) -> None:
    layouts = [layout for layout, _, _ in cells_of(facts)]
    assert layouts == sorted(layouts, key=lambda one: (one[:3] != "one", "scattered" in one))
    assert {"one block", "evenly spaced", "scattered"} <= {*layouts}


def with_times(facts: StudyFacts, seconds: Mapping[str, float]) -> StudyFacts:
    """The facts with these medians of some variants in all cases, and intervals of 1 % each way."""
    summary = facts.inputs.tables["summary"]
    changed = summary.copy()
    for variant, median in seconds.items():
        for column, factor in (("median", 1), ("ci_low", 0.99), ("ci_high", 1.01)):
            changed.loc[changed["variant"] == variant, column] = median * factor
    return StudyFacts(settled(facts.inputs.with_tables(summary=changed)), TRANSFERS)


def test_equally_fast_calls_of_pinned_memory_come_first(facts: StudyFacts) -> None:
    times = {"pinned_2d": 1e-6, "pinned_gather": 1.01e-6, "pageable_packed": 5e-7}
    row = cells_of(with_times(facts, times))["evenly spaced", "16 KiB", "256"]
    assert row[CALL] == "pinned_2dor gather"
    assert row["pageable_packed"], "other memory is shown, too"
    other = cells_of(with_times(facts, {**times, "pinned_2d": 1.1e-6}))
    assert other["evenly spaced", "16 KiB", "256"][CALL] == "pinned_gather"


def test_a_cell_has_the_rate_and_the_time_of_the_call(facts: StudyFacts) -> None:
    row = cells_of(with_times(facts, {"pinned_loop": 1e-3}))["evenly spaced", "1 KiB", "256"]
    assert row["pinned_loop"] == "262 MB/s1.000 ms"


def test_scattered_pieces_without_results_are_a_row_that_says_so(facts: StudyFacts) -> None:
    summary = facts.inputs.tables["summary"]
    few = summary[~summary["variant"].str.contains("list_")]
    other = StudyFacts(facts.inputs.with_tables(summary=few), TRANSFERS)
    assert cells_of(other)["scattered", "", ""][CALL] == "not measured yet"


def test_without_results_a_sentence_says_so(tmp_path: Path) -> None:
    nothing = StudyFacts(make_inputs(tmp_path, {"transfers": TRANSFERS}), TRANSFERS)
    table = ways_table(nothing)
    assert not table.rows and table.otherwise == NOT_MEASURED
    assert table.columns == [*WHERE, FIRST]
