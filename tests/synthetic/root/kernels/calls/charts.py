"""No chart of this study's own."""

from __future__ import annotations

from analysis.site.charts.theme import Chart
from analysis.site.facts.study_facts import StudyFacts


def charts(facts: StudyFacts) -> dict[str, Chart]:
    """None."""
    return {}
