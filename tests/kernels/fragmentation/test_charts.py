"""The chart of bytes reserved over bytes requested."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from allocator.fragmentation.charts import charts, kept
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.repository import STUDIES
from tests.synthetic import measured_row

STUDY = STUDIES["fragmentation"]


def facts_of(folder: Path, rows: list[tuple[str, str, float]]) -> StudyFacts:
    """A machine that has measured (variant, metric, median bytes) in the headline case."""
    measured = [
        measured_row(STUDY, variant, STUDY.headline, metric, size) for variant, metric, size in rows
    ]
    nothing = load_inputs(folder, folder, {STUDY.name: STUDY})
    return StudyFacts(nothing.with_tables(summary=pd.DataFrame(measured)), STUDY)


def test_what_is_reserved_is_held_against_what_is_requested(tmp_path: Path) -> None:
    rows = [
        ("p5_dropin", "reserved", 8e9),
        ("p5_dropin", "active", 3e9),
        ("p5_dropin", "requested", 2e9),
        ("torch_caching", "reserved", 8e9),  # without `requested`
    ]
    chart = kept(facts_of(tmp_path, rows))
    assert chart is not None
    table = chart.table.set_index("variant")
    assert table["value"].to_dict() == {"p5_dropin": pytest.approx(4)}
    assert table["label"]["p5_dropin"] == "4.00×"
    assert table["active_label"]["p5_dropin"] == "3.00 GB"


def test_a_pattern_that_holds_less_than_a_segment_is_left_out(tmp_path: Path) -> None:
    sizes = {"reserved": 2**21, "active": 4096, "requested": 4096}
    rows = [("p5_dropin", metric, float(size)) for metric, size in sizes.items()]
    assert kept(facts_of(tmp_path, rows)) is None


def test_without_results_there_are_no_charts(tmp_path: Path) -> None:
    facts = StudyFacts(load_inputs(tmp_path, tmp_path, {STUDY.name: STUDY}), STUDY)
    assert charts(facts) == {"kept": None, "heat": None}
