"""The charts of speed, of shares and of memory."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from allocator.training.charts import charts, memory, share, speed
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.charted import assert_page_is_drawn
from tests.repository import STUDIES
from tests.synthetic import measured_row

STUDY = STUDIES["training"]
ROWS = [
    ("p5_dropin", "work=training_small", "host_time", 5e-3),
    ("p5_dropin", "work=training_small", "relative_speed", 1.025),
    ("p5_dropin", "work=training_small", "allocation_share", 0.02),
    ("torch_plugged", "work=decoding", "allocation_share", 0.07),
    ("p5_dropin", "work=training_large", "reserved", 8e9),
    ("p5_dropin", "work=out_of_memory", "reserved", 3e9),
]


def facts_of(folder: Path, rows: list[tuple[str, str, str, float]]) -> StudyFacts:
    """A machine that has measured (variant, case, metric, median)."""
    nothing = load_inputs(folder, folder, {STUDY.name: STUDY})
    if not rows:
        return StudyFacts(nothing, STUDY)
    measured = [measured_row(STUDY, *row) for row in rows]
    return StudyFacts(nothing.with_tables(summary=pd.DataFrame(measured)), STUDY)


def test_speed_is_told_beside_pytorchs(tmp_path: Path) -> None:
    chart = speed(facts_of(tmp_path, ROWS))
    assert chart is not None
    assert chart.table["label"].to_list() == ["1.025×"]
    assert chart.table["interval"].to_list() == ["1.025 to 1.025"]


def test_a_share_is_told_where_it_is_counted(tmp_path: Path) -> None:
    chart = share(facts_of(tmp_path, ROWS))
    assert chart is not None
    table = chart.table.set_index(["variant", "case"])
    assert table["value"]["p5_dropin", "training_small"] == pytest.approx(0.02)
    assert table["label"]["torch_plugged", "decoding"] == "7.0 %"
    assert len(table) == 2


def test_memory_is_that_of_training_and_inference(tmp_path: Path) -> None:
    chart = memory(facts_of(tmp_path, ROWS))
    assert chart is not None
    assert chart.table["label"].to_list() == ["8.00 GB"]
    assert chart.table["value"].to_list() == [8e9]


def test_the_page_shows_the_charts(tmp_path: Path) -> None:
    assert_page_is_drawn(facts_of(tmp_path, ROWS), ("speed", "share", "memory"), tmp_path)


def test_without_results_there_are_no_charts(tmp_path: Path) -> None:
    assert charts(facts_of(tmp_path, [])) == dict.fromkeys(("speed", "share", "memory"))
