"""Charts: what common ones draw, and each as a specification with its data, and pictures of it."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
import vl_convert

from analysis.base.errors import FieldError
from analysis.site.charts import widgets
from analysis.site.charts.lines import clipped, line_chart
from analysis.site.charts.rows import row_chart
from analysis.site.charts.steps import NO_KEY, varying_keys
from analysis.site.charts.theme import MAX_LINES, Chart, Select
from analysis.site.charts.timeline import timeline_chart, timeline_events
from analysis.site.charts.widgets import PageTable
from analysis.site.charts.writing import MAX_ROWS, WIDTHS, read_index, write_chart, write_charts
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import discover
from tests.captured import captured_root
from tests.roots import drawn_charts, make_inputs

Charts = dict[str, dict[str, Chart]]

MARKS = alt.Chart().mark_point().encode(x="seconds:Q", y="variant:N")
TABLE = pd.DataFrame(
    {
        "machine": ["a", "a", "b", "b"],
        "variant": ["one", "two", "one", "two"],
        "rows": [1, 2, 1, 2],
        "seconds": [1.0, 2.0, 3.0, 4.0],
        "href": "data/#x",
        "unused": 7,
    }
)


@pytest.fixture(scope="session")
def charts(two_machines: Inputs) -> Charts:
    """Charts of two machines that have measured all of the synthetic studies, by study."""
    studies = two_machines.studies
    return {name: drawn_charts(StudyFacts(two_machines, study)) for name, study in studies.items()}


def test_the_steps_show_every_variant_in_words(two_machines: Inputs, charts: Charts) -> None:
    study, steps = two_machines.studies["copy"], charts["copy"]["steps"]
    titles = {variant.name: variant.title for variant in study.variants}
    assert set(steps.table["variant"]) == {*titles}
    assert (steps.table["name"] == steps.table["variant"].map(titles)).all()
    starts = {select.label: select.start for select in steps.selects}
    assert starts == {"batch": 128, "rows": 2048, "draw": "repeated"}
    published = steps.table[steps.table["state"] == "published"]
    assert published["rate"].isna().all() and published["published"].notna().all()
    assert set(charts["copy"]) >= {"steps", "cases", "dots"}, "a study may add charts"


def test_cases_run_along_the_number_with_most_values(charts: Charts) -> None:
    document = charts["strides"]["cases"].drawing.to_dict(validate=False)
    along = {layer["encoding"]["x"].get("field") for layer in document["layer"]}
    assert along == {"case_row_bytes"}, "names of lines are at their ends"
    # The headline has no `rows`; cases with `rows` are another choice.
    rows = charts["strides"]["cases"].table["case_rows"]
    assert NO_KEY in set(rows) and 4096 in set(rows)
    points = pd.DataFrame({"variant": ["one"] * 2, "case_rows": [1, 1], "case_pause": [50, None]})
    assert varying_keys(points) == ["case_pause"]


def test_the_timeline_has_a_row_a_lane_and_shows_a_step_first(tmp_path: Path) -> None:
    root = captured_root(tmp_path)
    facts = StudyFacts(make_inputs(root), discover(root)["copy"])
    events = timeline_events(facts)
    assert set(events["lane"]) == {"host", "stream 7"}
    assert set(events.loc[events["kind"] == "kernel", "name"]) == {"copy"}
    assert events.groupby("variant")["end_us"].max().tolist() == pytest.approx([200_002] * 3)
    assert set(events["state"]) == {"captured", "stale"}
    chart = timeline_chart(facts)
    assert chart is not None and [select.label for select in chart.selects] == ["variant"]


def chart_of(table: pd.DataFrame, *selects: Select, drawing: Any = MARKS) -> Chart:
    return Chart(drawing, table, 'A "chart".', {"variant": "what"}, selects)


def document_of(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text())


def test_every_chart_is_valid_and_has_its_data_and_pictures(charts: Charts, tmp_path: Path) -> None:
    for study, of_study in charts.items():
        folder = tmp_path / study
        folder.mkdir()
        write_charts({**of_study, "none": None}, folder, {"box": "The box"})
        index = read_index(folder)
        assert index["none"] is None
        for name in of_study:
            document, summary = document_of(folder, name), index[name]
            kind: Any = alt.LayerChart if "layer" in document else alt.Chart
            kind.validate({**document, "usermeta": {}})
            assert vl_convert.vegalite_to_vega({**document, "width": 300})
            assert summary is not None and summary.description == document["description"]
            assert [*summary.choices] == document["usermeta"]["selects"]
            for size, (width, height) in summary.sizes.items():
                picture = (folder / f"{name}.{size}.svg").read_text()
                assert f'width="{width}"' in picture and height > 60
                assert width == pytest.approx(WIDTHS[size], abs=2), "nothing is cut at the side"
                assert "color-scheme: light dark" in picture and "light-dark(" in picture
                assert "href" not in picture.partition("<g")[2]


def test_menus_choose_the_rows_of_a_picture(tmp_path: Path) -> None:
    chart = chart_of(TABLE, Select("rows", "rows", 2), Select("variant", "what"))
    machines = {"b": "Machine b", "a": "Machine a"}
    summary = write_chart(chart, tmp_path, "one", machines)
    assert [(one["label"], one["options"], one["chosen"]) for one in summary.choices] == [
        ("machine", ["Machine a", "Machine b"], 1),
        ("rows", [1, 2], 0),
        ("what", ["one", "two"], 0),
    ], "menus begin where there are numbers"
    document = document_of(tmp_path, "one")
    assert len(document["data"]["values"]) == len(TABLE)
    assert "unused" not in document["data"]["values"][0]
    assert document["encoding"]["href"]["condition"]["field"] == "href"
    assert document["encoding"]["tooltip"][0]["title"] == "what"
    short = chart_of(TABLE[:2].assign(seconds=1.234e-10))
    assert not write_chart(short, tmp_path, "two").choices, "a menu of one option changes nothing"
    (drawn,) = {row["seconds"] for row in document_of(tmp_path, "two")["data"]["values"]}
    assert drawn == pytest.approx(1.234e-10, rel=1e-3), "short times keep their digits"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE.assign(seconds=np.nan), "numbers in one of seconds, got 'none'"),
        (TABLE.assign(seconds="long"), "numbers in the column seconds, got 'text'"),
        (TABLE[:0], f"1 to {MAX_ROWS} rows to draw, got '0'"),
        (pd.concat([TABLE[:2]] * MAX_ROWS), f"1 to {MAX_ROWS} rows to draw, got"),
    ],
)
def test_an_empty_or_huge_chart_stops_the_stage(
    tmp_path: Path, table: pd.DataFrame, message: str
) -> None:
    with pytest.raises(FieldError, match=f"chart one: expected {message}"):
        write_chart(chart_of(table), tmp_path, "one")


def test_a_row_has_its_name_and_figure_once(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {"row": ["a", "a"], "x": [1, 2], "words": "All of it", "figure": "12 GB/s"}
    )
    marks = alt.Chart().mark_point().encode(x="x:Q")
    drawing = row_chart("row", ["a"], marks, name="words", figure="figure")
    write_chart(chart_of(table, drawing=drawing), tmp_path, "rows")
    picture = (tmp_path / "rows.narrow.svg").read_text()
    assert picture.count(">All of it<") == picture.count(">12 GB/s<") == 1


def lines_of(table: pd.DataFrame, order: str = "up down", **options: Any) -> Chart:
    x = alt.X("size:Q", scale=alt.Scale(type="log"))
    chart = line_chart(table, x, alt.Y("rate:Q"), "line", order.split(), "", {}, **options)
    assert chart is not None
    return chart


def test_no_line_crosses_a_gap_that_was_not_measured() -> None:
    sizes = [1, 2, 4, 40, 80]
    table = pd.DataFrame({"size": sizes * 2, "line": ["up"] * 5 + ["down"] * 5, "rate": 1.0})
    rows = lines_of(table).table
    assert rows.groupby("line")["stretch"].nunique().to_dict() == {"up": 2, "down": 2}
    assert rows["stretch"].nunique() == 4
    rows = lines_of(table, max_gap=10).table
    assert rows["stretch"].nunique() == 2
    # Measured points that a model predicts have its dashed line only.
    model = table.assign(state="predicted")
    chart = lines_of(pd.concat([table.assign(state="measured"), model]))
    filters = json.dumps(chart.drawing.to_dict(validate=False))
    assert "indexof(['down', 'up'], datum.line) < 0" in filters


def test_names_at_the_ends_of_lines_do_not_overlap() -> None:
    table = pd.DataFrame(
        {"size": [1, 2] * 2, "line": ["up", "up", "down", "down"], "rate": [1.0, 100, 1, 99.9]}
    )
    rows = lines_of(table).table
    at = rows.dropna(subset="label_at").set_index("line")["label_at"]
    assert at["up"] == 100 and at["down"] < 96
    with pytest.raises(FieldError, match=f"at most {MAX_LINES}"):
        many = pd.DataFrame({"size": 1, "rate": 1.0, "line": list("abcdef")})
        lines_of(many, "a b c d e f")


def test_a_wide_interval_leaves_the_axis_to_the_figures_of_its_machine() -> None:
    table = pd.DataFrame(
        {
            "machine": ["a", "a", "b"],
            "rate": [50.0, 40.0, 400.0],
            "rate_low": [49.0, -10.0, np.nan],
            "rate_high": [51.0, 900.0, np.nan],
        }
    )
    drawn = clipped(table, "rate", ["machine"])
    assert drawn["begin"].tolist()[:2] == [49, 0] and drawn["reach"].tolist()[:2] == [51, 62.5]
    assert drawn["begin"].isna().tolist() == [False, False, True]


def test_a_figure_that_a_page_table_lacks_was_not_measured(
    two_machines: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = PageTable(["way", "GB/s", "note"], [["a", "1", ""], ["b", "", "c"]], "", ["GB/s"])
    module = SimpleNamespace(TABLES={"rates": lambda facts: made})
    monkeypatch.setattr(widgets, "load_if_any", lambda facts, name: module)
    widgets.write_page_tables(StudyFacts(two_machines, two_machines.studies["copy"]), tmp_path)
    rows = widgets.read_page_table(tmp_path, "rates").rows
    assert rows == [["a", "1", ""], ["b", "not measured", "c"]]
