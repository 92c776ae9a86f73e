"""The allocator study's charts: ratios to PyTorch, times of single operations."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import vl_convert

from allocator.charts import REFERENCE, UNPAIRED, heat, latency
from analysis.facts.inputs import load_inputs
from analysis.facts.rows import MeasuredRow
from analysis.facts.study_facts import StudyFacts
from analysis.tables.summary import RATIO_COLUMNS
from tests.repository import STUDIES
from tests.synthetic import RUN

STUDY = STUDIES["allocator"]
CASE = "pattern=hot_pair"


def facts_of(
    folder: Path, times: dict[str, float], ratios: pd.DataFrame, metric: str = "op_time"
) -> StudyFacts:
    """A machine that has measured these variants' median `metric` in one pattern."""
    rows = [
        MeasuredRow(
            *("box", STUDY.name, name, CASE, metric, "s"),
            *(seconds, seconds, seconds, seconds, seconds),
            *(8, 8, 1, 0.0, 0),
            run=RUN,
        )
        for name, seconds in times.items()
    ]
    nothing = load_inputs(folder, folder, folder, {STUDY.name: STUDY})
    return StudyFacts(replace(nothing, summary=pd.DataFrame(rows), ratios=ratios), STUDY)


def test_heat_pairs_the_rounds_where_they_were_and_says_the_interval(tmp_path: Path) -> None:
    paired = ("box", STUDY.name, "p4_final", REFERENCE, CASE, "op_time", 14.4, 12.6, 18.2, "faster")
    ratios = pd.DataFrame([paired], columns=RATIO_COLUMNS)
    times = {"p4_final": 1e-9, "cuda_malloc_async": 4e-9, REFERENCE: 12e-9}
    chart = heat(facts_of(tmp_path, times, ratios))
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


def test_the_legend_of_dashes_shows_strokes(tmp_path: Path) -> None:
    nothing = pd.DataFrame(columns=RATIO_COLUMNS)
    chart = latency(facts_of(tmp_path, {"p4_final": 1e-9}, nothing, "latency_p50"))
    assert chart is not None
    svg = vl_convert.vegalite_to_svg(chart.to_dict())
    # The last legend is that of the patterns: a line from one point to another, with a stroke.
    symbol = re.findall(r'role-legend-symbol"[^>]*>(<path[^>]*>)', svg)[-1]
    assert re.search(r'd="M[^MLA]*L[^MLA]*" stroke="#', symbol)
