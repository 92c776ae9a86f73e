"""The table for engines: pieces, today's call and the gain of the fastest way."""

from __future__ import annotations

from pathlib import Path

from analysis.site.facts.study_facts import StudyFacts
from kernels.transfers.page_tables import TABLES, USES
from kernels.transfers.ways_table import NOT_MEASURED
from tests.kernels.transfers.test_widgets import TRANSFERS
from tests.roots import make_inputs


def test_every_use_has_its_pieces_and_leads_to_the_adviser(facts: StudyFacts) -> None:
    table = TABLES["engines"](facts)
    assert len(table.rows) == len(USES) and "time on box" in table.columns
    for use, row in zip(USES, table.rows, strict=True):
        assert len(row) == len(table.columns)
        assert f"adviser.count={use.count}" in str(row[2])
    sizes = [use.size for use in USES]
    assert sizes[:4] == [32_768, 2_097_152, 656, 41_984]


def test_gain_follows_the_results_and_no_time_is_guessed(facts: StudyFacts) -> None:
    table = TABLES["engines"](facts)
    gains = [str(row[-1]) for row in table.rows]
    assert any("×" in gain for gain in gains)
    summary = facts.inputs.tables["summary"]
    slow = summary["variant"].str.contains("list_loop")
    changed = summary.assign(median=summary["median"].mask(slow, summary["median"] * 100))
    slower = StudyFacts(facts.inputs.with_tables(summary=changed), TRANSFERS)
    assert [str(row[-1]) for row in TABLES["engines"](slower).rows] != gains
    (large,) = (row for use, row in zip(USES, table.rows, strict=True) if use.size == 2**21)
    assert large[5:] == ["", "not measured", "", ""]


def test_without_results_a_sentence_says_so(tmp_path: Path) -> None:
    nothing = StudyFacts(make_inputs(tmp_path, {"transfers": TRANSFERS}), TRANSFERS)
    table = TABLES["engines"](nothing)
    assert not table.rows and table.empty_text == NOT_MEASURED
