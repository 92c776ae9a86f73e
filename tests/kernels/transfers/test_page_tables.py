"""The table for engines: pieces, today's call and the gain of the fastest way."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from analysis.site.facts.study_facts import StudyFacts
from analysis.study.claims.comparison import Bounded
from kernels.transfers import duplex_tables
from kernels.transfers.page_tables import TABLES, USES
from kernels.transfers.scattered_runs import CASE, MAX_CPU_S, MIN_SHARE
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
    gains = dict(zip((use.what for use in USES), (str(row[-1]) for row in table.rows), strict=True))
    assert any("×" in gain for gain in gains.values())
    summary = facts.inputs.tables["summary"]
    slow = summary["variant"].str.contains("list_loop|pinned_loop")
    changed = summary.assign(median=summary["median"].mask(slow, summary["median"] * 100))
    slower = StudyFacts(facts.inputs.with_tables(summary=changed), TRANSFERS)
    other = TABLES["engines"](slower)
    assert [row[-1] for row in other.rows] != [row[-1] for row in table.rows]
    batches = [row for use, row in zip(USES, table.rows, strict=True) if use.size == 2**21]
    assert [row[5] for row in batches] == ["not measured"], "batches end at smaller pieces"


def test_without_results_a_sentence_says_so(tmp_path: Path) -> None:
    nothing = StudyFacts(make_inputs(tmp_path, {"transfers": TRANSFERS}), TRANSFERS)
    table = TABLES["engines"](nothing)
    assert not table.rows and table.empty_text == NOT_MEASURED


def test_scattered_pieces_are_judged_by_run(facts: StudyFacts) -> None:
    summary = facts.inputs.tables["summary"]
    (like, *_) = summary[summary["variant"] == "pinned_list_gather"].index
    made = [
        {"variant": "pinned_list_rate", "metric": "contiguous_share", "by_run": "0.89|0.95"},
        {"variant": "pinned_list_gather", "metric": "cpu_time", "by_run": "7e-06|1.2e-05"},
    ]
    rows = [summary.loc[like].to_dict() | {"case": CASE, "runs": 2, **one} for one in made]
    kept = summary[summary["case"] != CASE]
    changed = pd.concat([kept, pd.DataFrame(rows)], ignore_index=True)
    facts_changed = StudyFacts(facts.inputs.with_tables(summary=changed), TRANSFERS)
    share, cpu = TABLES["scattered_runs"](facts_changed).rows
    assert share[2:] == ["at least 0.9", "0.890", "0.950", "1 of 2"]
    assert cpu[2:] == ["at most 12 µs", "7.000 µs", "12.00 µs", "2 of 2"]


def test_experiments_on_both_directions_are_told_by_machine_and_blocks(facts: StudyFacts) -> None:
    summary = facts.inputs.tables["summary"]
    like = summary.iloc[0].to_dict() | {"variant": duplex_tables.VARIANT, "runs": 2}
    (alone, few, *_) = [case.id for case in TRANSFERS.variant(duplex_tables.VARIANT).cases]
    made = [
        {"case": alone, "metric": "gather_kept_by_out", "by_run": "0.2|0.3"},
        {"case": alone, "metric": "read_latency_by_both", "by_run": "8e-06|6e-06"},
        {"case": few, "metric": "gather_kept_by_out", "by_run": "0.5|0.6"},
    ]
    others = summary[summary["variant"] != duplex_tables.VARIANT]
    changed = pd.concat([others, pd.DataFrame([like | one for one in made])], ignore_index=True)
    facts_changed = StudyFacts(facts.inputs.with_tables(summary=changed), TRANSFERS)
    kept, latency = TABLES["duplex_experiments"](facts_changed).rows
    assert kept[1:] == ["0.250"] and latency[1:] == ["7.000 µs"]
    few_blocks, *_, all_blocks = TABLES["duplex_blocks"](facts_changed).rows
    assert all_blocks[1:] == ["no limit", "", "0.250", "", "", "", "7.000 µs"]
    assert few_blocks[1:4] == ["4", "", "0.550"]


def test_demands_of_scattered_pieces_are_those_of_the_claim() -> None:
    claims = {claim.id: claim for claim in TRANSFERS.claims}
    share, cpu = claims["scattered_by_kernel"].tests
    assert isinstance(share, Bounded) and share.at_least == MIN_SHARE
    assert isinstance(cpu, Bounded) and cpu.at_most == pytest.approx(MAX_CPU_S)
