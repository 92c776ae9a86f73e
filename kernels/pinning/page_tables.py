"""The table of the page: every way with 16 GiB."""

from __future__ import annotations

from typing import Final

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import extent, whole

LIMIT_S: Final = 0.006
"""The claims allow the longest call of another process this time."""
CASE: Final = "mib=16384,beside=process,calls=malloc"
TIMED: Final = "timed_chunks"
"""The variant that times single chunks."""


def large(facts: StudyFacts) -> PageTable:
    """A row for each machine and way of pinning 16 GiB, in the order of the steps."""
    columns = ["machine", "way", "runs", "pinned in", "longest call of the other process"]
    columns += ["longest call during unpinning"]
    columns += [f"runs with both within {LIMIT_S * 1e3:g} ms"]
    metrics, rows = ("host_time", "call_worst", "unpin_worst"), []
    for machine in machines_by_evidence(facts):
        for way in facts.study.variants:
            found = [facts.by_fresh_run(machine, way.name, CASE, metric) for metric in metrics]
            runs = len(found[0])
            if way.name != TIMED and runs and {len(by_run) for by_run in found} == {runs}:
                within = sum(max(pair) <= LIMIT_S for pair in zip(*found[1:], strict=True))
                row = [facts.inputs.called(machine), way.title, whole(runs)]
                row += [extent(by_run, "s") for by_run in found]
                rows.append([*row, f"{within} of {runs}"])
    empty = "No machine has measured these waits yet."
    return PageTable(columns, rows, empty, [*columns[2:3], columns[-1]])


TABLES: Final = {"large": large}
