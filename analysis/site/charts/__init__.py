"""Common charts of every study, one file each, and the charts that a study adds in charts.py."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.site.charts.agreement import agreement_chart
from analysis.site.charts.cases import cases_chart
from analysis.site.charts.model import model_chart
from analysis.site.charts.steps import steps_chart
from analysis.site.charts.theme import Chart
from analysis.site.charts.timeline import timeline_chart
from analysis.site.facts.study_facts import StudyFacts
from analysis.toolchain.modules import load_python

COMMON = {
    "steps": steps_chart,
    "cases": cases_chart,
    "model": model_chart,
    "agreement": agreement_chart,
    "timeline": timeline_chart,
}


def study_charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """Charts of a study by the name its page embeds them by, None where there is nothing to draw.

    `charts(facts)` of a study's charts.py may add charts, or replace a common one by its name.
    Each chart's data is a table (`chart.data`) and its `description` says what it shows.
    """
    added: Mapping[str, Chart | None] = {}
    if (facts.study.folder / "charts.py").exists():
        added = load_python(facts.study, "charts").charts(facts)
    common = {name: None if name in added else make(facts) for name, make in COMMON.items()}
    return {**common, **added}
