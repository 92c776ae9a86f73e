"""Tables of a gather beside copies to the host: all experiments, and the effect of its blocks."""

from __future__ import annotations

import statistics
from math import inf
from typing import Final

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import digits, quantity, whole
from analysis.api.study import parse_case

VARIANT: Final = "pinned_list_duplex_cause"
OF_EVERY_WAY: Final = "cpu_time"
"""A metric of every way, which is no figure of these experiments."""
ALL: Final = inf
"""Thread blocks of a case that does not limit them."""
NOT_MEASURED: Final = "No machine has done these experiments yet."
BY_BLOCKS: Final = {
    "gather_alone": "gather alone",
    "gather_kept_by_out": "gather beside copies out: share of its rate alone",
    "out_kept_by_gather": "copies out beside the gather: share of their rate alone",
    "launch_time_by_gather": "launch and wait beside the gather",
    "read_latency_by_gather": "one read beside the gather",
    "read_latency_by_both": "one read beside gather and copies out",
}
"""Columns of the table by thread blocks, by their metrics."""


def experiments(facts: StudyFacts) -> PageTable:
    """A row for each figure of the gather without a limit of blocks, a column for each machine."""
    case = _cases(facts)[ALL]
    machines = [one for one in machines_by_evidence(facts) if _figures(facts, one, case)]
    columns = ["figure", *(facts.inputs.called(machine) for machine in machines)]
    by_machine = [_figures(facts, machine, case) for machine in machines]
    rows = [
        [metric.label, *(figures.get(name, "") for figures in by_machine)]
        for name, metric in facts.study.metrics.items()
        if any(name in figures for figures in by_machine)
    ]
    return PageTable(columns, rows, NOT_MEASURED, columns[1:])


def by_blocks(facts: StudyFacts) -> PageTable:
    """A row for each machine and number of thread blocks."""
    columns = ["machine", "thread blocks", *BY_BLOCKS.values()]
    rows = []
    for machine in machines_by_evidence(facts):
        for blocks, case in sorted(_cases(facts).items()):
            if figures := _figures(facts, machine, case):
                shown = [figures.get(metric, "") for metric in BY_BLOCKS]
                rows.append(
                    [
                        facts.inputs.called(machine),
                        "no limit" if blocks == ALL else whole(blocks),
                        *shown,
                    ]
                )
    return PageTable(columns, rows, NOT_MEASURED, columns[2:])


def _cases(facts: StudyFacts) -> dict[float, str]:
    """The cases by their number of thread blocks."""
    cases = [case.id for case in facts.study.variant(VARIANT).cases]
    return {float(parse_case(case).get("blocks", ALL)): case for case in cases}


def _figures(facts: StudyFacts, machine: str, case: str) -> dict[str, str]:
    """The median of the runs by metric, or nothing if it was not measured."""
    found = {}
    for name, metric in facts.study.metrics.items():
        runs = facts.figures.by_fresh_run(machine, VARIANT, case, name)
        if runs and name != OF_EVERY_WAY:
            figure = statistics.median(runs)
            found[name] = quantity(figure, "s") if metric.unit == "s" else digits(figure)
    return found
