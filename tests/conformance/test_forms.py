"""The form with every study's questions over made-up results, in a browser: measured cells, others,
and mistakes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from analysis import ROOT
from analysis.results.answers.question import questions_of
from analysis.site.charts.widgets import FORM, write_forms
from analysis.site.pages.html import PARTS
from tests.browser import Strict, launched, served
from tests.conformance.results import measured
from tests.repository import STUDIES

if TYPE_CHECKING:
    from playwright.sync_api import Page

ASKED = {question.name: study for study in STUDIES.values() for question in questions_of(study)}
PAGE = """<!doctype html><title>Answers</title>{}<script type="module" src="start.js"></script>"""
EXPECTED = {
    "bytes": "expected bytes such as 4096, 24 KiB or 40 GiB, got “x”.",
    "count": "expected a whole number of at least 1, got “x”.",
}


def place_of(spans: Any, asked: list[int]) -> int:
    """The place of the answer in a table."""
    for value in asked:
        spans = next(inner for low, high, inner in spans if low <= value <= high)
    return int(spans)


def choose(page: Page, values: Mapping[str, object]) -> str:
    """The answer once these fields have these values."""
    for name, value in values.items():
        if page.locator(f"select[name={name}]").count():
            page.select_option(f"select[name={name}]", str(value))
        else:
            page.fill(f"input[name={name}]", str(value))
    return page.inner_text(".hp-answer")


def ask_all(page: Page, data: Mapping[str, Any]) -> None:
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
    for field in data["fields"]:
        if kind := field.get("kind"):
            before = page.input_value(f"input[name={field['name']}]")
            assert choose(page, {field["name"]: "x"}).endswith(f": {EXPECTED[kind]}")
            choose(page, {field["name"]: before})
    options = {one["name"]: [*one["options"]] for one in data["fields"] if "options" in one}
    known = [table["where"] for table in data["tables"]]
    every = (dict(zip(options, values, strict=True)) for values in product(*options.values()))
    for where in [one for one in every if one not in known][:1]:
        assert choose(page, where) == "Not measured with these choices."


@pytest.mark.heavy
def test_the_form_answers_in_measured_cells_and_refuses_others(tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(ROOT / "docs" / "assets", site)
    for study in {study.name: study for study in ASKED.values()}.values():
        write_forms(measured(study, tmp_path / study.name), site)
    parts = [(f"{name}{FORM}", name, f"about {name}", "table") for name in ASKED]
    (site / "index.html").write_text(PAGE.format(PARTS.form(parts, "./", "Which way?")))
    (site / "start.js").write_text('import { watchForms } from "./form.js"; watchForms();')
    with launched() as browser, served(site, Strict) as address:
        page = browser.new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        for name in ASKED:
            data = json.loads((site / f"{name}{FORM}").read_text())
            start = dict(zip(data["axes"], data["tables"][-1]["cells"][0][0], strict=True))
            page.goto(f"{address}?{urlencode({'ask': name, **start})}")
            page.wait_for_selector(".hp-form form")
            for field, value in start.items():
                assert page.input_value(f"input[name={field}]") == str(value)
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
