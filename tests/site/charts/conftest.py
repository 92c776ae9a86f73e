"""Charts of two machines that have measured all of the synthetic studies."""

from __future__ import annotations

import pytest

from analysis.site.charts.theme import Chart
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import drawn_charts

Charts = dict[str, dict[str, Chart]]


@pytest.fixture(scope="session")
def charts(two_machines: Inputs) -> Charts:
    """Charts by name, by study."""
    studies = two_machines.studies
    return {name: drawn_charts(StudyFacts(two_machines, study)) for name, study in studies.items()}
