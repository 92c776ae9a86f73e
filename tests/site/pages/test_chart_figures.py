"""Figures of charts on pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from analysis.base.errors import FieldError
from analysis.site.charts.writing import ChartSummary, read_index, write_charts, write_index
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.chart_figures import chart_figure
from analysis.site.pages.html import gap
from analysis.site.pages.page import Page
from analysis.site.pages.sentences import NOTHING
from analysis.site.pages.staging import Staged
from tests.roots import drawn_charts
from tests.synthetic import CALLS


def page_of(inputs: Inputs, charts: Mapping[str, ChartSummary | None], docs: str = "") -> Page:
    """A page of `calls`."""
    env = SimpleNamespace(page=SimpleNamespace(url="studies/calls/"), conf={"docs_dir": docs})
    return Page(Staged(inputs, {}, {}, {"calls": charts}, {}, {}), env)


def test_chart_without_data_is_noted_and_an_unknown_one_is_an_error(
    two_machines: Inputs,
) -> None:
    facts = StudyFacts(two_machines, CALLS)
    page = page_of(two_machines, {"timeline": None})
    unmeasured = StudyFacts(
        two_machines.with_tables(summary=two_machines.tables["summary"].iloc[:0]), CALLS
    )
    assert not unmeasured.machines
    with pytest.raises(FieldError, match=r"^chart: expected"):
        chart_figure(page, unmeasured, "steps", "Calls.")
    # Links also lead to a chart that is not drawn.
    paragraph = '<p id="chart-timeline">{}</p>'
    assert chart_figure(page, unmeasured, "timeline", "Calls.") == paragraph.format(NOTHING)
    assert chart_figure(page, facts, "timeline", "Calls.") == paragraph.format(
        gap("Nothing to draw yet.")
    )
    with pytest.raises(FieldError, match=r"^chart: expected one of \['timeline'\], got 'steps'$"):
        chart_figure(page, facts, "steps", "Calls.")


def test_chart_keeps_its_description(two_machines: Inputs) -> None:
    page = page_of(
        two_machines,
        {"dots": ChartSummary('a "b" <c>', (), {"wide": (700, 90), "narrow": (326, 90)})},
    )
    shown = chart_figure(page, StudyFacts(two_machines, CALLS), "dots", "d & e")
    for part in (
        'aria-label="a &#34;b&#34; &lt;c&gt;"',
        "<figcaption>d &amp; e</figcaption>",
        'data-spec="../../charts/calls/dots.json"',
        '<a href="../../charts/calls/dots.json">',
    ):
        assert part in shown


def test_every_chart_is_a_picture_with_its_selects(two_machines: Inputs, tmp_path: Path) -> None:
    facts = StudyFacts(two_machines, CALLS)
    folder = tmp_path / "charts" / "calls"
    write_index(write_charts(drawn_charts(facts), folder), folder)
    page = page_of(two_machines, read_index(folder))
    for name in ("steps", "cases"):
        shown = chart_figure(page, facts, name, "")
        assert (
            f'<img src="../../charts/calls/{name}.wide.svg" alt="" loading="lazy" width="' in shown
        )
        assert f'srcset="../../charts/calls/{name}.narrow.svg" width="' in shown
        assert "<select disabled><option selected>box</option>" in shown
