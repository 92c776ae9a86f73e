"""The allocator study's charts: ratios to PyTorch, times of single operations."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from allocator.phases.charts import REFERENCE, charts, heap, memory_map
from allocator.phases.tables import STEPS
from analysis.results.tables.rows import RatioRow, columns
from analysis.site.charts.writing import write_chart
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.toolchain.derived import derive_tables, read_derived
from analysis.toolchain.modules import module_path
from tests.kernels.phases.modules import built
from tests.repository import STUDIES
from tests.synthetic import measured_row

STUDY = STUDIES["phases"]
CASE = "pattern=hot_pair"


def facts_of(
    folder: Path, times: dict[str, float], ratios: pd.DataFrame, metric: str = "op_time"
) -> StudyFacts:
    """A machine that has measured these variants' median `metric` in one pattern."""
    rows = [measured_row(STUDY, name, CASE, metric, seconds) for name, seconds in times.items()]
    nothing = load_inputs(folder, folder, {STUDY.name: STUDY})
    return StudyFacts(nothing.with_tables(summary=pd.DataFrame(rows), ratios=ratios), STUDY)


def facts_with(derived: Path, nothing: Path) -> StudyFacts:
    """The tables in the folder `derived`, and no results."""
    inputs = load_inputs(nothing, nothing, {STUDY.name: STUDY})
    return StudyFacts(replace(inputs, derived={STUDY.name: read_derived(derived)}), STUDY)


def test_heat_pairs_rounds_and_leaves_out_what_no_run_has_both_of(tmp_path: Path) -> None:
    paired = ("box", STUDY.name, "p4_final", REFERENCE, CASE, "op_time", 14.4, 12.6, 18.2, "faster")
    ratios = pd.DataFrame([(*paired, 3, 3, "14.4|14.4|14.4", 1)], columns=columns(RatioRow))
    times = {"p4_final": 1e-9, "cuda_malloc_async": 4e-9, REFERENCE: 12e-9}
    chart = charts(facts_of(tmp_path, times, ratios))["heat"]
    assert chart is not None
    table = chart.table[chart.table["pattern"] == "hot_pair"].set_index("variant")
    assert table["value"].to_dict() == {"p4_final": 14.4}
    assert table["label"]["p4_final"] == "14.4×"
    assert table["interval"].to_dict() == {"p4_final": "12.6 to 18.2"}
    means = chart.table[chart.table["pattern"] != "hot_pair"].set_index("variant")
    assert means["value"]["p4_final"] == pytest.approx(14.4)


def test_heat_has_no_colour_beyond_the_ends_of_its_scale(tmp_path: Path) -> None:
    paired = ("box", STUDY.name, "p0_driver", REFERENCE, CASE, "op_time", 0.001, 0.001, 0.001)
    ratios = pd.DataFrame([(*paired, "slower", 1, 1, "0.001", 1)], columns=columns(RatioRow))
    chart = charts(facts_of(tmp_path, {"p0_driver": 1e-5, REFERENCE: 1e-8}, ratios))["heat"]
    assert chart is not None
    write_chart(chart, tmp_path, "heat")
    picture = (tmp_path / "heat.wide.svg").read_text()
    cells = re.findall(r'aria-roledescription="rect mark"[^>]*fill="([^"]*)"', picture)
    assert set(cells) == {"rgb(176, 58, 58)"}


REPLAYED = ("p1_exact_cache", "p3_block_pool", "p4_final")


def test_the_heap_is_drawn_from_what_built_allocators_do(tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    (modules / STUDY.name).mkdir(parents=True)
    for name in STEPS:
        shutil.copy(built(name).__file__, module_path(modules, STUDY, STUDY.variant(name)))
    assert derive_tables(STUDY, modules, tmp_path / "derived") == {}
    facts = facts_with(tmp_path / "derived", tmp_path / "nothing")
    after = facts.derived("after_short")
    assert after is not None
    for picture in STUDY.folder.glob("blocks.*.svg"):
        drawn_text = picture.read_text()
        for variant, blocks in after.groupby("variant"):
            calls = int(blocks["driver_calls"].iloc[0])
            assert f"{variant}: {calls} driver call" in drawn_text, "draw the picture anew"
    drawn, over_time = memory_map(facts), heap(facts)
    assert drawn is not None
    assert over_time is not None
    table = drawn.table
    assert (table["begin"] < table["end"]).all()
    assert (table["high"] - table["low"] == table["bytes"]).all()
    # At no time do two allocations lie on the same bytes.
    ordered = table.sort_values("begin")
    for row in ordered.itertuples():
        alive = ordered[(ordered["begin"] < row.begin) & (ordered["end"] > row.begin)]
        assert ((alive["high"] <= row.low) | (alive["low"] >= row.high)).all()
    at = over_time.table.pivot(index="operation", columns="what", values="bytes")
    assert all((at["asked for"] <= at[f"reserved by {name}"]).all() for name in REPLAYED)


def test_without_its_modules_no_heap_is_drawn_and_the_reason_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "derived"
    folder.mkdir()
    (folder / "heap.csv").write_text("operation,what,bytes,pattern\n0,asked for,1,of before\n")
    absent = derive_tables(STUDY, tmp_path / "modules", folder)
    assert json.loads((folder / "absent.json").read_text()) == absent
    assert {name: "not built" in reason for name, reason in absent.items()} == {
        "memory_map": True,
        "heap": True,
        "after_short": True,
    }
    facts = facts_with(folder, tmp_path / "nothing")
    assert memory_map(facts) is None
    assert heap(facts) is None
