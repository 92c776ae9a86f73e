"""Every study's charts, tables and forms over made-up results, and every name on a page."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import urlencode

import pytest
from jinja2 import Environment

from analysis import ROOT
from analysis.results.answers.question import questions_of
from analysis.site.charts import study_charts
from analysis.site.charts.theme import Chart
from analysis.site.charts.widgets import FORM, PageTable, write_forms
from analysis.site.charts.writing import WIDTHS, write_chart
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import PARTS
from analysis.site.pages.macros import MACROS
from analysis.site.pages.staging import ALL
from analysis.study import Study
from analysis.toolchain.modules import load_python
from tests.browser import Strict, launched, served
from tests.conformance.results import measured, without_results
from tests.repository import STUDIES
from tests.roots import draws_once

if TYPE_CHECKING:
    from playwright.sync_api import Page as Browsed

MARKS = re.compile(r'aria-roledescription="(?!axis|legend|title|group)')
COMMON = {"model", "timeline", "cases", "steps"}
"""Charts that every study may have."""
OF_MORE = {
    *("page_table_reads", "reach", "predicted_links", "gpus"),
    *("agreement", "repeatability", "measuring"),
}
"""Tables of more than the samples of a study: of profiles, other programs, sheets, all studies."""
OF_FULL = {"sorting_pays": "row_bytes"}
"""Tables of cases that only the full grid has, and a key of these cases."""
CALIBRATED = "model"
"""The chart that takes another study's results, those of the calibration."""
UNSHOWN = {"pool_gather": {"pool_sizes"}}
"""Charts that only pages of all studies show."""
FOLDER = TemporaryDirectory(prefix="results-")


@dataclass(frozen=True)
class Call:
    """A call of a macro on a page; `study` is that of the page unless the call names another."""

    page: Path
    macro: str
    study: str
    arguments: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)


@cache
def calls() -> list[Call]:
    """All calls of macros of all pages, those of claims that hold and of claims that do not."""
    found: dict[str, Call] = {}

    def record(page: Path, holds: bool, macro: str, *arguments: Any, **named: Any) -> bool | str:
        study = named.pop("study", page.stem if page.parent.name == "studies" else "")
        call = Call(page, macro, study, arguments, named)
        found[repr(call)] = call
        return holds if macro == "holds" else ""

    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        for holds in (True, False) if "render_macros: false" not in text else ():
            macros = {name: partial(record, page, holds, name) for name in MACROS}
            Environment().from_string(text, macros).render()
    return [*found.values()]


def shown(study: str, macro: str) -> set[str]:
    """The charts or tables of a study that any page shows, in its text or folded at its end."""
    names = set()
    for call in (one for one in calls() if one.study == study):
        if call.macro == macro:
            names.add(call.arguments[0])
        elif call.macro == "evidence":
            names |= {*call.named.get(f"{macro}s", ())}
            names |= {"cases"} if call.arguments and macro == "chart" else set()
    return names


@cache
def facts_of(name: str) -> StudyFacts:
    return measured(STUDIES[name], Path(FOLDER.name, name))


@cache
def facts_with(name: str, key: str) -> StudyFacts:
    """The study as if it had only the cases with this key, all of them measured."""
    study = STUDIES[name]
    cases = {v: tuple(case for case in v.cases if key in case.values) for v in study.variants}
    variants = (replace(v, cases=of, after=None) for v, of in cases.items() if of)
    only = replace(study, variants=tuple(variants), claims=())
    return measured(only, Path(FOLDER.name, f"{name}-{key}"), "full")


@cache
def charts_of(name: str) -> dict[str, Chart | None]:
    return study_charts(facts_of(name))


def tables_of(name: str) -> dict[str, Callable[[StudyFacts], PageTable]]:
    if not (STUDIES[name].folder / "page_tables.py").exists():
        return {}
    return dict(load_python(STUDIES[name], "page_tables").TABLES)


@pytest.mark.parametrize("name", STUDIES)
def test_every_chart_is_on_a_page_and_renders_with_marks(name: str, tmp_path: Path) -> None:
    facts, on_pages = facts_of(name), shown(name, "chart")
    assert charts_of(name).keys() - COMMON - on_pages <= UNSHOWN.get(name, set())
    made = [charts_of(name)]
    if STUDIES[name].has_link:  # an empty table joined to another can turn numbers into text
        none = facts.inputs.tables["model_parameters"][:0]
        without = facts.inputs.with_tables(model_parameters=none)
        made.append(study_charts(StudyFacts(without, facts.study)))
    for charts, chart_name in product(made, sorted(on_pages - {CALIBRATED})):
        chart = charts[chart_name]
        assert chart is not None, f"{chart_name}: nothing to draw"
        with draws_once(), patch.dict(WIDTHS, {"wide": WIDTHS["wide"]}, clear=True):
            write_chart(chart, tmp_path, chart_name)
        for picture in tmp_path.glob(f"{chart_name}.*.svg"):
            assert MARKS.search(picture.read_text()), f"{picture.name} has no marks"


@pytest.mark.parametrize("name", STUDIES)
def test_without_results_nothing_is_drawn_and_tables_are_sentences(name: str) -> None:
    nothing = without_results(facts_of(name))
    for table_name, table in tables_of(name).items():
        made = table(nothing)
        assert made.empty_text and (not made.rows or table_name in OF_MORE)
    drawn: dict[str, Chart | None] = study_charts(nothing)
    assert {name for name, chart in drawn.items() if chart is not None} <= COMMON


@pytest.mark.parametrize("name", STUDIES)
def test_every_table_has_rows_as_wide_as_its_columns(name: str) -> None:
    facts = facts_of(name)
    assert tables_of(name).keys() <= shown(name, "table")
    for table_name, table in tables_of(name).items():
        key = OF_FULL.get(table_name)
        made = table(facts_with(name, key) if key else facts)
        assert made.rows or table_name in OF_MORE, f"{table_name}: no rows"
        assert {len(row) for row in made.rows} <= {len(made.columns)}
        assert {*made.numeric} <= {*made.columns}


NAMES: dict[str, Callable[[Study], Iterable[str]]] = {
    **dict.fromkeys(
        ("verdict", "measured", "holds"), lambda study: (claim.id for claim in study.claims)
    ),
    **dict.fromkeys(("figure", "ratio", "source", "hosts"), lambda study: study.variant_names),
    "table": lambda study: {*tables_of(study.name), "steps"},
    "drawing": lambda study: (one.name.partition(".")[0] for one in study.folder.glob("*.svg")),
    "chart": lambda study: charts_of(study.name),
}
"""Names in a study that the first argument of a macro may have."""


def test_every_page_names_what_exists() -> None:
    for call in (one for one in calls() if one.macro in NAMES and one.arguments):
        if call.study == ALL:
            assert (call.macro, call.arguments[0]) == ("chart", "machines"), call
            continue
        assert call.study in STUDIES, call
        study = STUDIES[call.study]
        assert call.arguments[0] in {*NAMES[call.macro](study)}, call
        if call.macro in ("figure", "ratio"):
            known = {*study.variant_names, *study.metrics, "throughput"}
            assert {*call.arguments} <= known, call
            parameters = {*inspect.signature(MACROS[call.macro]).parameters}
            assert {*call.named} <= {*study.case_keys} | parameters, call


# Forms, in a browser: measured cells, others, and mistakes.

ASKED = {question.name: study for study in STUDIES.values() for question in questions_of(study)}
FORM_PAGE = '<!doctype html>{}<script type="module" src="start.js"></script>'
START = """import { watchForms } from "./form.js";
document.addEventListener("hp-loaded", ({ target }) => { window.loaded = target.innerText; });
watchForms();"""
EXPECTED = {
    "bytes": "expected bytes such as 4096, 24 KiB or 40 GiB, got “x”.",
    "count": "expected a whole number of at least 1, got “x”.",
}


def place_of(spans: Any, asked: list[int]) -> int:
    """The place of the answer in a table."""
    for value in asked:
        spans = next(inner for low, high, inner in spans if low <= value <= high)
    return int(spans)


def choose(page: Browsed, values: Mapping[str, object]) -> str:
    """The answer once these fields have these values."""
    for name, value in values.items():
        if page.locator(f"select[name={name}]").count():
            page.select_option(f"select[name={name}]", str(value))
        else:
            page.fill(f"input[name={name}]", str(value))
    return page.inner_text(".hp-answer")


def ask_all(page: Browsed, data: Mapping[str, Any]) -> None:
    axes = data["axes"]
    for table in data["tables"][:3]:
        for point, _ in table["cells"][:: len(table["cells"]) // 3 + 1]:
            answer = table["answers"][place_of(table["spans"], point)]
            said = choose(page, {**table["where"], **dict(zip(axes, point, strict=True))})
            assert all(line in said for line in answer["lines"])
            assert page.locator(".hp-table tbody tr").count() == len(answer["rows"])
            largest = max(other[-1] for other, _ in table["cells"])
            beyond = choose(page, {axes[-1]: 2 * largest})
            assert beyond.startswith("Not measured.\n") and " measured cell: " in beyond
    if data["multiple"] > 1:
        assert f"multiples of {data['multiple']} B" in choose(page, {axes[0]: 1001})
    for asked in data["fields"]:
        if kind := asked.get("kind"):
            before = page.input_value(f"input[name={asked['name']}]")
            assert choose(page, {asked["name"]: "x"}).endswith(f": {EXPECTED[kind]}")
            choose(page, {asked["name"]: before})
    options = {one["name"]: [*one["options"]] for one in data["fields"] if "options" in one}
    known = [table["where"] for table in data["tables"]]
    every = (dict(zip(options, values, strict=True)) for values in product(*options.values()))
    for where in [one for one in every if one not in known][:1]:
        assert choose(page, where) == "Not measured with these choices."


def test_the_form_answers_in_measured_cells_and_refuses_others(tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(ROOT / "docs" / "assets", site)
    for study in {study.name: study for study in ASKED.values()}.values():
        write_forms(facts_of(study.name), site)
    parts = [(f"{name}{FORM}", name, f"about {name}", "table") for name in ASKED]
    (site / "index.html").write_text(FORM_PAGE.format(PARTS.form(parts, "./", "Which way?")))
    (site / "start.js").write_text(START)
    with launched() as browser, served(site, Strict) as address:
        page = browser.new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        for name in ASKED:
            data = json.loads((site / f"{name}{FORM}").read_text())
            start = dict(zip(data["axes"], data["tables"][-1]["cells"][0][0], strict=True))
            page.goto(f"{address}?{urlencode({'ask': name, **start})}")
            page.wait_for_selector(".hp-form form")
            assert "Fastest first" in page.evaluate("loaded")  # for tables.js
            for name_of, value in start.items():
                assert page.input_value(f"input[name={name_of}]") == str(value)
            ask_all(page, data)
            last = data["axes"][-1]
            choose(page, {last: "1,234,567"})  # as this site writes it
            choose(page, {last: "1234567"})
            assert f"ask={name}&" in page.evaluate("location.search")
            assert f"{last}=1234567" in page.evaluate("location.search")
        choose(page, {"ask": "rows"})
        page.wait_for_selector("select[name=layout]")
        assert page.evaluate("location.search") == "?ask=rows"
        assert not faults
