"""What a page shows for a chart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.charts.writing import InWords
from analysis.errors import FieldError
from analysis.facts.inputs import Inputs
from analysis.facts.study_facts import StudyFacts
from analysis.report.chart_figures import chart_figure
from analysis.report.sentences import NOTHING
from analysis.report.staging import Staged
from tests.synthetic import CALLS


def test_a_chart_without_data_says_so_and_one_that_nobody_knows_is_a_mistake(
    two_machines: Inputs,
) -> None:
    facts = StudyFacts(two_machines, CALLS)
    staged = Staged(two_machines, {}, {}, {"calls": {"timeline": None}}, {}, {})
    unmeasured = StudyFacts(replace(two_machines, summary=two_machines.summary.iloc[:0]), CALLS)
    assert not unmeasured.machines
    with pytest.raises(FieldError, match=r"^chart: expected"):
        chart_figure(staged, unmeasured, "steps", "Calls.", "../")
    assert chart_figure(staged, unmeasured, "timeline", "Calls.", "../") == NOTHING
    assert chart_figure(staged, facts, "timeline", "Calls.", "../") == "Nothing to draw yet."
    with pytest.raises(FieldError, match=r"^chart: expected one of \['timeline'\], got 'steps'$"):
        chart_figure(staged, facts, "steps", "Calls.", "../")


def test_a_chart_keeps_what_its_description_says(two_machines: Inputs) -> None:
    charts = {"calls": {"dots": InWords('a "b" <c>', "2 points <d>.")}}
    staged = Staged(two_machines, {}, {}, charts, {}, {})
    shown = chart_figure(staged, StudyFacts(two_machines, CALLS), "dots", "d & e", "../")
    assert 'aria-label="a &#34;b&#34; &lt;c&gt;"' in shown
    assert "<figcaption>d &amp; e</figcaption>" in shown
    assert 'id="chart-dots-text">2 points &lt;d&gt;.</p>' in shown
    assert 'data-spec="../charts/calls/dots.vg.json"' in shown
    assert '<a href="../charts/calls/dots.csv">' in shown
