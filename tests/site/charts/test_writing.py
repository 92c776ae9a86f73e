"""All charts of a study as files, for a later stage."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import pandas as pd
import pytest
import vl_convert

from analysis.base import forked
from analysis.site.charts import study_charts, writing
from analysis.site.charts.still import Still
from analysis.site.charts.writing import read_index, write_chart, write_charts, write_index
from analysis.site.facts.inputs import Inputs, load_inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import drawing_once, drawn_charts
from tests.synthetic import CALLS


def test_data_of_charts_are_kept_beside_them(two_machines: Inputs, tmp_path: Path) -> None:
    facts = StudyFacts(two_machines, two_machines.studies["copy"])
    charts = study_charts(facts)
    index = write_charts(charts, tmp_path / "copy", "copy")
    assert all(path.stem.partition(".")[0] in index for path in (tmp_path / "copy").iterdir())
    write_index(index, tmp_path / "copy")
    found = read_index(tmp_path / "copy")
    assert found == index and list(found) == list(charts) and None in found.values()
    chart, words = charts["steps"], found["steps"]
    assert chart is not None and words is not None
    assert words.text == write_chart(chart, tmp_path, "steps", "charts").text
    assert words.description.startswith(facts.study.title)


def test_every_chart_has_pictures_for_wide_and_narrow_windows(
    two_machines: Inputs, tmp_path: Path
) -> None:
    charts = drawn_charts(StudyFacts(two_machines, CALLS))
    index = write_charts(charts, tmp_path, "calls")
    assert index["steps"] is not None
    for name, one in index.items():
        for column, picture in (
            Still(tmp_path / f"{name}.vg.json").pictures().items() if one else ()
        ):
            assert (tmp_path / f"{name}.{column}.svg").read_text() == picture.svg
            assert one is not None and one.sizes[column] == [picture.width, picture.height]


def test_a_chart_may_be_of_any_number_of_rows(tmp_path: Path) -> None:
    table = pd.DataFrame({"machine": [f"box-{number}" for number in range(6000)], "seconds": 1.0})
    chart = alt.Chart(table).mark_point().encode(x="seconds:Q", y="machine:N")
    write_chart(chart, tmp_path, "many", "charts")
    assert len((tmp_path / "many.csv").read_text().splitlines()) == 6001
    assert "box-1" not in (tmp_path / "many.json").read_text()


def test_charts_are_also_written_after_this_process_has_drawn(
    two_machines: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forked process that draws would then hang."""
    monkeypatch.setattr(forked, "cpus", lambda: 2)
    vl_convert.vegalite_to_vega({"mark": "point", "data": {"values": []}})
    chart = drawn_charts(StudyFacts(two_machines, CALLS))["steps"]
    charts = {f"chart_{number}": chart for number in range(2 * writing.MIN_CHARTS_PER_PROCESS)}
    assert writing.has_engine()
    assert list(write_charts(charts, tmp_path, "some")) == list(charts)


def test_charts_use_only_the_tables_of_their_study(two_machines: Inputs, tmp_path: Path) -> None:
    study = two_machines.studies["copy"]
    tables = two_machines.results.parent / "build"
    alone = load_inputs(
        tables, two_machines.results, {study.name: study}, {study.name: tmp_path / "none"}
    )
    assert {run.study for run in alone.runs} == {"copy"}
    for name, inputs in (("all", two_machines), ("alone", alone)):
        with drawing_once():
            write_charts(study_charts(StudyFacts(inputs, study)), tmp_path / name, "copy")
    drawn = {path.name: path.read_text() for path in (tmp_path / "all").iterdir()}
    assert drawn == {path.name: path.read_text() for path in (tmp_path / "alone").iterdir()}
