"""The allocator study's charts: ratios to PyTorch, times of single operations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from allocator.charts import REFERENCE, UNPAIRED, heat
from analysis.report.inputs import load_inputs
from analysis.report.points import Context
from analysis.results.summary import RATIO_COLUMNS
from analysis.study import discover

STUDY = discover()["allocator"]
CASE = "pattern=hot_pair"


def context_of(folder: Path, times: dict[str, float], ratios: pd.DataFrame) -> Context:
    """A machine that has measured these variants' median op_time in one pattern."""
    common = {"machine": "box", "study": STUDY.name, "case": CASE, "metric": "op_time"}
    rows = [
        common | {"variant": name, "median": seconds, "stale": False}
        for name, seconds in times.items()
    ]
    nothing = load_inputs(folder, folder, folder, {STUDY.name: STUDY})
    return Context(replace(nothing, summary=pd.DataFrame(rows), ratios=ratios), STUDY)


def test_heat_pairs_the_rounds_where_they_were_and_says_the_interval(tmp_path: Path) -> None:
    paired = ("box", STUDY.name, "p4_final", REFERENCE, CASE, "op_time", 14.4, 12.6, 18.2, "faster")
    ratios = pd.DataFrame([paired], columns=RATIO_COLUMNS)
    times = {"p4_final": 1e-9, "cuda_malloc_async": 4e-9, REFERENCE: 12e-9}
    chart = heat(context_of(tmp_path, times, ratios))
    assert chart is not None
    table = chart.data[chart.data["pattern"] == "hot_pair"].set_index("variant")
    assert table["ratio"].to_dict() == {"p4_final": 14.4, "cuda_malloc_async": 3.0}
    assert table["label"]["p4_final"] == "14.4×"
    assert table["interval"].to_dict() == {
        "p4_final": "12.6 to 18.2",
        "cuda_malloc_async": UNPAIRED,
    }
    means = chart.data[chart.data["pattern"] != "hot_pair"].set_index("variant")
    assert means["ratio"]["p4_final"] == pytest.approx(14.4)
