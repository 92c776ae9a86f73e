"""No charts specific to this study."""

from __future__ import annotations

from analysis.api.charts import Chart, StudyFacts


def charts(facts: StudyFacts) -> dict[str, Chart]:
    """None."""
    return {}
