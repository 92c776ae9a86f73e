"""Widgets: their files, and their place on a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.base.errors import FieldError
from analysis.site.charts.widgets import study_widgets, write_widgets
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.chart_figures import widget_figure
from tests.site.pages.test_chart_figures import page_of
from tests.synthetic import CALLS

MADE = """
from analysis.api.charts import Widget
def widgets(facts):
    return {"dial": Widget({"at": 3}, ("a", "b"), [["1", "<2>"]]), "none": None}
"""


def facts_with(inputs: Inputs, folder: Path, files: Mapping[str, str]) -> StudyFacts:
    """The study `calls` in a folder with these files."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return StudyFacts(inputs, replace(CALLS, folder=folder))


def test_a_widget_is_a_table_until_its_script_runs(two_machines: Inputs, tmp_path: Path) -> None:
    script = 'import { turn } from "./turning.js";\nexport {}'
    files = {"widgets.py": MADE, "dial.js": script, "turning.js": "export const turn = 1;"}
    facts = facts_with(two_machines, tmp_path / "s", files)
    charts = tmp_path / "charts" / "calls"
    charts.mkdir(parents=True)
    write_widgets(facts, charts)
    assert json.loads((charts / "dial.widget.json").read_text()) == {"at": 3}
    assert {name: (charts / name).read_text() for name in ("dial.js", "turning.js")} == {
        name: text for name, text in files.items() if name.endswith(".js")
    }
    page = page_of(two_machines, {}, str(tmp_path))
    shown = widget_figure(page, facts, "dial", "a & b")
    for part in (
        'data-script="../../charts/calls/dial.js"',
        'data-source="../../charts/calls/dial.widget.json"',
        "<td>&lt;2&gt;</td>",
        "<figcaption>a &amp; b</figcaption>",
    ):
        assert part in shown
    nothing = '<p id="chart-none"><span class="hp-gap">Nothing to show yet.</span></p>'
    assert widget_figure(page, facts, "none", "") == nothing


def test_a_widget_without_its_script_is_an_error(two_machines: Inputs, tmp_path: Path) -> None:
    facts = facts_with(two_machines, tmp_path / "s", {"widgets.py": MADE})
    with pytest.raises(FieldError, match=r"widget dial: expected a script dial\.js"):
        write_widgets(facts, tmp_path)


def test_a_study_may_have_no_widgets(two_machines: Inputs) -> None:
    assert study_widgets(StudyFacts(two_machines, CALLS)) == {}
