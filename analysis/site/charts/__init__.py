"""Common charts of every study, one file each, and the charts that a study adds in charts.py."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from analysis.site.charts.model import model_chart
from analysis.site.charts.steps import cases_chart, steps_chart
from analysis.site.charts.theme import Chart
from analysis.site.charts.timeline import timeline_chart
from analysis.site.charts.widgets import load_if_any, write_forms, write_page_tables
from analysis.site.charts.writing import write_charts
from analysis.site.facts.guarding import guarded, write_left_out
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.study_facts import StudyFacts

COMMON: Final = {
    "steps": steps_chart,
    "cases": cases_chart,
    "model": model_chart,
    "timeline": timeline_chart,
}


def study_charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """Charts of a study by the name its page embeds them by, None where there is nothing to draw.

    `charts(facts)` of a study's charts.py may add charts, or replace a common one by its name.
    See `theme.Chart` for what a chart consists of; its description follows the study's title.
    """
    module = load_if_any(facts, "charts")
    added: Mapping[str, Chart | None] = module.charts(facts) if module else {}
    made = {name: make(facts) for name, make in COMMON.items() if name not in added} | {**added}
    title = facts.study.title
    return {
        name: chart and replace(chart, description=f"{title}: {chart.description}")
        for name, chart in made.items()
    }


def draw_study(inputs: Inputs, name: str, folder: Path) -> None:
    """Write charts, forms and tables of a study to `folder`, without results that they cannot be
    made of; and the payload of each variant and case, of which the explorer makes rates."""
    folder.mkdir(parents=True, exist_ok=True)

    def draw(known: Inputs) -> None:
        facts = StudyFacts(known, known.studies[name])
        machines = {one: known.called(one) for one in machines_by_evidence(facts)}
        write_charts(study_charts(facts), folder, machines)
        write_forms(facts, folder)
        write_page_tables(facts, folder)
        payloads = {" ".join(pair): size for pair, size in facts.study.payloads.items()}
        (folder / "all.payloads.json").write_text(json.dumps(payloads))

    _, used = guarded(inputs, draw, "figures that charts can be drawn of", name)
    write_left_out(used, inputs, folder)
