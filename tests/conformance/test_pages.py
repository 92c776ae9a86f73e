"""Every study's charts, tables and forms over made-up results, and every name on a page."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest

from analysis.site.charts import study_charts
from analysis.site.charts.theme import Chart
from analysis.site.charts.widgets import PageTable, study_widgets
from analysis.site.charts.writing import write_chart
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.macros import MACROS
from analysis.study import Study
from analysis.toolchain.modules import load_python
from tests.conformance.pages import calls, shown
from tests.conformance.results import measured, without_results
from tests.repository import STUDIES

MARKS = re.compile(r'aria-roledescription="(?!axis|legend|title|group)')
COMMON_TABLES = {"steps"}
OF_MORE = {
    *("page_table_reads", "reach", "predicted_links"),
    *("agreement", "repeatability", "measuring"),
}
"""Tables of more than the samples of a study: of profiles, other programs, sheets, all studies."""
CALIBRATED = "model"
"""The chart that takes another study's results, those of the calibration."""


FOLDER = TemporaryDirectory(prefix="results-")


@cache
def facts_of(name: str) -> StudyFacts:
    return measured(STUDIES[name], Path(FOLDER.name, name))


@cache
def charts_of(name: str) -> dict[str, Chart | None]:
    return study_charts(facts_of(name))


def tables_of(name: str) -> dict[str, Callable[[StudyFacts], PageTable]]:
    if not (STUDIES[name].folder / "page_tables.py").exists():
        return {}
    return dict(load_python(STUDIES[name], "page_tables").TABLES)


@pytest.mark.parametrize("name", STUDIES)
def test_every_chart_of_a_page_renders_with_marks(name: str, tmp_path: Path) -> None:
    made = charts_of(name)
    for chart_name in sorted(shown(name, "chart")):
        if chart_name == CALIBRATED:
            continue
        chart = made[chart_name]
        assert chart is not None, f"{chart_name}: nothing to draw"
        assert not chart.table.empty
        write_chart(chart, tmp_path, chart_name)
        for picture in tmp_path.glob(f"{chart_name}.*.svg"):
            assert MARKS.search(picture.read_text()), f"{picture.name} has no marks"


def quantities(drawing: Any) -> set[str]:
    """The columns that a chart's specification encodes as numbers."""
    if isinstance(drawing, dict):
        own = {drawing["field"]} if drawing.get("type") == "quantitative" else set()
        return own.union(*map(quantities, drawing.values()))
    return set().union(*map(quantities, drawing)) if isinstance(drawing, list) else set()


def assert_numbers_are_drawn(charts: dict[str, Chart | None]) -> None:
    """An empty table joined to another one can turn its numbers into text, which no axis has."""
    for name, chart in charts.items():
        if chart is not None:
            drawn = quantities(chart.drawing.to_dict(validate=False)) & {*chart.table.columns}
            for column in drawn:
                assert pd.api.types.is_numeric_dtype(chart.table[column]), f"{name}: {column}"


@pytest.mark.parametrize("name", STUDIES)
def test_what_a_chart_draws_as_a_number_is_one(name: str) -> None:
    assert_numbers_are_drawn(charts_of(name))
    if STUDIES[name].has_link:
        facts = facts_of(name)
        none = facts.inputs.tables["model_parameters"][:0]
        without = StudyFacts(facts.inputs.with_tables(model_parameters=none), facts.study)
        assert_numbers_are_drawn(study_charts(without))


@pytest.mark.parametrize("name", STUDIES)
def test_without_results_nothing_is_drawn_and_tables_are_sentences(name: str) -> None:
    nothing = without_results(facts_of(name))
    assert not any(study_widgets(nothing).values())
    for table_name, table in tables_of(name).items():
        made = table(nothing)
        assert made.empty_text and (not made.rows or table_name in OF_MORE)
    drawn: dict[str, Chart | None] = study_charts(nothing)
    of_results = {one for one, chart in drawn.items() if chart is not None}
    assert of_results <= {"timeline", "steps", "cases"}, "charts of no results"


@pytest.mark.parametrize("name", STUDIES)
def test_every_table_and_form_has_rows_as_wide_as_its_columns(name: str) -> None:
    facts = facts_of(name)
    for table_name, table in tables_of(name).items():
        made = table(facts)
        assert made.rows or table_name in OF_MORE, f"{table_name}: no rows"
        assert {len(row) for row in made.rows} <= {len(made.columns)}
        assert {*made.numeric} <= {*made.columns}
    for form_name, form in study_widgets(facts).items():
        assert form is not None and form.rows, f"{form_name}: no rows"
        assert {len(row) for row in form.rows} == {len(form.columns)}
        assert json.dumps(form.data, allow_nan=False)


NAMES: dict[str, Callable[[Study], Iterable[str]]] = {
    **dict.fromkeys(
        ("verdict", "measured", "holds"), lambda study: (claim.id for claim in study.claims)
    ),
    **dict.fromkeys(("figure", "ratio", "source", "hosts"), lambda study: study.variant_names),
    "table": lambda study: {*tables_of(study.name), *COMMON_TABLES},
    "drawing": lambda study: (one.name.partition(".")[0] for one in study.folder.glob("*.svg")),
    "widget": lambda study: study_widgets(facts_of(study.name)),
    "chart": lambda study: charts_of(study.name),
}
"""Names in a study that the first argument of a macro may have."""
CALLS = [call for call in calls() if call.macro in NAMES and call.arguments]


@pytest.mark.parametrize("page", sorted({call.page for call in CALLS}), ids=lambda page: page.stem)
def test_every_page_names_what_exists(page: Path) -> None:
    for call in CALLS:
        if call.page == page:
            assert call.study in STUDIES, f"{call}: no study"
            study = STUDIES[call.study]
            assert call.arguments[0] in {*NAMES[call.macro](study)}, str(call)
            if call.macro in ("figure", "ratio"):
                known = {*study.variant_names, *study.metrics, "throughput"}
                assert {*call.arguments} <= known, str(call)
                parameters = {*inspect.signature(MACROS[call.macro]).parameters}
                assert {*call.named} <= {*study.case_keys} | parameters, str(call)


@pytest.mark.parametrize("name", STUDIES)
def test_every_chart_and_table_of_a_study_is_on_a_page(name: str) -> None:
    assert {*tables_of(name)} <= shown(name, "table")
    own = {*charts_of(name)} - {"model", "agreement", "timeline", "cases", "steps"}
    assert own - shown(name, "chart") <= UNSHOWN.get(name, set())


UNSHOWN = {"pool_gather": {"pool_sizes"}}
"""Charts that only pages of all studies show."""
