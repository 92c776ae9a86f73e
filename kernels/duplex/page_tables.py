"""The table of a gather beside other work, by its number of thread blocks."""

from __future__ import annotations

import statistics
from typing import Final

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import digits, quantity, whole

VARIANT: Final = "neighbours"
COLUMNS: Final = {
    "gather_alone": "gather alone",
    "gather_kept_by_out": "gather beside copies out: share of its rate alone",
    "out_kept_by_gather": "copies out beside the gather: share of their rate alone",
    "large_out_kept_by_gather": "copies out of 128 MiB: share of their rate alone",
    "within_kept_by_gather": "copies within device memory: share of their rate alone",
    "read_latency": "one read alone",
    "read_latency_by_gather": "one read beside the gather",
    "launch_time": "launch and wait alone",
    "launch_time_by_gather": "launch and wait beside the gather",
}
"""Columns by their metrics."""


def by_blocks(facts: StudyFacts) -> PageTable:
    """A row for each machine and number of thread blocks, with the medians of runs."""
    columns, rows = ["machine", "thread blocks", *COLUMNS.values()], []
    for machine in machines_by_evidence(facts):
        for case in facts.study.variant(VARIANT).cases:
            runs = {m: facts.by_fresh_run(machine, VARIANT, case.id, m) for m in COLUMNS}
            if any(runs.values()):
                blocks = case.number("blocks")
                figures = (_figure(facts, metric, of_runs) for metric, of_runs in runs.items())
                called = facts.inputs.called(machine)
                rows.append([called, whole(blocks) if blocks else "no limit", *figures])
    return PageTable(columns, rows, "No machine has done these experiments yet.", columns[2:])


def _figure(facts: StudyFacts, metric: str, runs: list[float]) -> str:
    """The median of runs, empty without runs."""
    if not runs:
        return ""
    figure = statistics.median(runs)
    return quantity(figure, "s") if facts.study.metrics[metric].unit == "s" else digits(figure)


TABLES: Final = {"by_blocks": by_blocks}
