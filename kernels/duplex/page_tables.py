"""The table of a gather beside other work, by its number of thread blocks."""

from __future__ import annotations

from typing import Final

from analysis.api.charts import PageTable, StudyFacts, fresh_figures
from analysis.api.quantities import whole

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
    found = fresh_figures(facts, *COLUMNS)
    found = found[found["variant"] == VARIANT]
    table = found.pivot(index=["machine", "blocks"], columns="metric", values="short")
    rows = [
        [facts.inputs.called(machine), whole(blocks) if blocks else "no limit", *figures]
        for (machine, blocks), *figures in table.reindex(columns=[*COLUMNS]).fillna("").itertuples()
    ]
    columns = ["machine", "thread blocks", *COLUMNS.values()]
    return PageTable(columns, rows, "No machine has done these experiments yet.", columns[2:])


TABLES: Final = {"by_blocks": by_blocks}
