"""The table of all ways by size: the first call, rates, and the caller's cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from analysis.site.facts.study_facts import StudyFacts
from kernels.transfers.ways_table import COLUMNS, LAYOUTS, NO_BREAK, NOT_MEASURED, ways_table
from tests.kernels.transfers.test_widgets import TRANSFERS
from tests.roots import make_inputs, settled


def cells_of(facts: StudyFacts) -> dict[tuple[str, str, str], dict[str, str]]:
    """The rows as text, by layout, size and number of pieces."""
    table = ways_table(facts)
    rows = [dict(zip(table.columns, map(_text, row), strict=True)) for row in table.rows]
    return {(_layout(row["pieces"]), row["size"], row["number"]): row for row in rows}


def _layout(cell: str) -> str:
    """Without the basis below it."""
    return cell.partition("box")[0]


def _text(cell: object) -> str:
    return cell.striptags() if hasattr(cell, "striptags") else str(cell)


def test_layouts_are_in_order(facts: StudyFacts) -> None:
    layouts = dict.fromkeys(layout for layout, _, _ in cells_of(facts))
    assert [*layouts] == [*LAYOUTS]


def with_times(facts: StudyFacts, seconds: Mapping[str, float]) -> StudyFacts:
    """The facts with these medians of some variants in all cases, and intervals of 1 % each way."""
    summary = facts.inputs.tables["summary"]
    changed = summary.copy()
    for variant, median in seconds.items():
        for column, factor in (("median", 1), ("ci_low", 0.99), ("ci_high", 1.01)):
            changed.loc[changed["variant"] == variant, column] = median * factor
    return StudyFacts(settled(facts.inputs.with_tables(summary=changed)), TRANSFERS)


def test_the_simplest_of_equally_fast_calls_is_named(facts: StudyFacts) -> None:
    times = {"pinned_2d": 1e-6, "pinned_gather": 0.98e-6, "pageable_packed": 1.2e-6}
    key = "evenly spaced", "16 KiB", "256"
    row = cells_of(with_times(facts, times))[key]
    assert row["use"] == "pinned_2d"
    others = row["other calls"].replace(NO_BREAK, " ").split(", ")
    assert others[0].startswith("gather ") and others[1].startswith("pageable_packed ")
    other = cells_of(with_times(facts, {**times, "pinned_2d": 1.1e-6}))
    assert other[key]["use"] == "pinned_gather"


def test_a_way_has_its_rate_and_the_time_of_the_call(facts: StudyFacts) -> None:
    key = "evenly spaced", "1 KiB", "256"
    slow, fast = (cells_of(with_times(facts, {"pinned_loop": each}))[key] for each in (1e-3, 1e-9))
    expected = f"loop{NO_BREAK}0.262{NO_BREAK}GB/s{NO_BREAK}(1.000{NO_BREAK}ms)"
    assert expected in slow["other calls"].split(", ")
    assert fast["use"] == "pinned_loop"
    assert (fast["rate"], fast["call returns after"]) == ("262144 GB/s", "1.000 ns")


def test_without_results_a_sentence_says_so(tmp_path: Path) -> None:
    nothing = StudyFacts(make_inputs(tmp_path, {"transfers": TRANSFERS}), TRANSFERS)
    table = ways_table(nothing)
    assert not table.rows and table.empty_text == NOT_MEASURED
    assert table.columns == COLUMNS
