"""What a page shows for a chart."""

from __future__ import annotations

import pytest

from analysis.errors import FieldError
from analysis.facts.inputs import Inputs
from analysis.facts.study_facts import StudyFacts
from analysis.report.chart_figures import chart_figure
from analysis.report.staging import Staged
from tests.synthetic import CALLS


def test_a_chart_without_data_says_so_and_one_that_nobody_knows_is_a_mistake(
    two_machines: Inputs,
) -> None:
    facts = StudyFacts(two_machines, CALLS)
    staged = Staged(two_machines, {}, {}, {"calls": {"timeline": None}}, {}, {})
    assert chart_figure(staged, facts, "timeline", "Calls.", str) == "Nothing to draw yet."
    with pytest.raises(FieldError, match=r"^chart: expected one of \['timeline'\], got 'steps'$"):
        chart_figure(staged, facts, "steps", "Calls.", str)
