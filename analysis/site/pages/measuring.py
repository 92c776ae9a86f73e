"""How long measuring takes: the newest default run of each study on every machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime

from analysis.base.quantities import quantity
from analysis.site.facts.inputs import Inputs
from analysis.site.interface import STAGES
from analysis.site.pages.html import table
from analysis.site.pages.page import macro


@macro("measuring")
def measuring_section(inputs: Inputs) -> str:
    """The duration of each machine's newest default run, by study."""
    machines = {name: _seconds(inputs, name) for name in inputs.machines}
    timed = {name: studies for name, studies in machines.items() if studies}
    if not timed:
        return "No machine has a default run yet."
    columns = ["study", "budget", *map(inputs.called, timed)]
    budgets = {name: study.budget_s for name, study in inputs.studies.items()}
    shown = [name for name in budgets if any(name in studies for studies in timed.values())]
    shown.sort(key=lambda name: -max(studies.get(name, 0.0) for studies in timed.values()))
    lines = [
        [
            *(name, quantity(budgets[name], "s")),
            *(quantity(studies.get(name, math.nan), "s") for studies in timed.values()),
        ]
        for name in shown
    ]
    totals = [sum(budgets[name] for name in shown), *(sum(of.values()) for of in timed.values())]
    lines.append(["all", *(quantity(seconds, "s") for seconds in totals)])
    return table(columns, lines, numeric=columns[1:])


@macro("measuring_stages")
def stages_section(inputs: Inputs) -> str:
    """The seconds of each stage of the newest run of each study that recorded them."""
    sections = []
    for machine in inputs.machines:
        newest = {
            run.study: run.stages_s.model_dump()
            for run in inputs.runs_on(machine)
            if run.study in inputs.studies and run.stages_s
        }
        if newest:
            sections.append(f"{inputs.called(machine)}:\n\n{_stages_table(newest)}")
    return "\n\n".join(sections) or "No committed run has recorded its stages yet."


def _stages_table(stages: Mapping[str, Mapping[str, float]]) -> str:
    total = {name: sum(of[name] for of in stages.values()) for name in STAGES}
    rows = sorted(stages.items(), key=lambda each: -each[1]["timing"])
    lines = [
        [
            study,
            *(quantity(of[name], "s") for name in STAGES),
            f"{of['recorded'] / of['timing']:.0%}" if of["timing"] else "",
        ]
        for study, of in [*rows, ("all", total)]
    ]
    columns = ["study", *STAGES, "recorded of timing"]
    return table(columns, lines, numeric=columns[1:])


def _seconds(inputs: Inputs, machine: str) -> dict[str, float]:
    """Seconds from the first round to the last of each study's newest whole default run."""
    return {
        run.study: _moment(run.end) - _moment(run.start)
        for run in inputs.runs_on(machine)
        if run.study in inputs.studies and run.grid == "default" and run.rounds and not run.asked
    }


def _moment(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
