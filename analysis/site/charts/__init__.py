"""Common charts of every study, one file each, and the charts that a study adds in charts.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from analysis.site.charts.agreement import agreement_chart
from analysis.site.charts.cases import cases_chart
from analysis.site.charts.model import model_chart
from analysis.site.charts.steps import steps_chart
from analysis.site.charts.theme import Chart
from analysis.site.charts.timeline import timeline_chart
from analysis.site.charts.writing import ChartSummary, write_charts
from analysis.site.facts.journeys import machines_by_evidence
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
    See `theme.Chart` for what a chart consists of.
    """
    added: Mapping[str, Chart | None] = {}
    if (facts.study.folder / "charts.py").exists():
        added = load_python(facts.study, "charts").charts(facts)
    common = {name: None if name in added else make(facts) for name, make in COMMON.items()}
    return {**common, **added}


def draw_study(facts: StudyFacts, folder: Path) -> dict[str, ChartSummary | None]:
    """Write the charts of a study, and the payload of each variant and case, of which the explorer
    makes rates; returns a summary of each chart."""
    names = {machine: facts.inputs.called(machine) for machine in machines_by_evidence(facts)}
    index = write_charts(study_charts(facts), folder, names)
    payloads = {" ".join(pair): size for pair, size in facts.study.payloads.items()}
    (folder / "all.payloads.json").write_text(json.dumps(payloads))
    return index
