"""The table of what scattered pieces reach in each run, beside what the claim demands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import digits, quantity

NOT_MEASURED: Final = "No machine has measured these pieces yet."
CASE: Final = "size=4096,count=4096,direction=h2d,host=scattered,device=scattered,busy=0"
MIN_SHARE: Final = 0.9
MAX_CPU_S: Final = 12e-6
"""Demands of the claim: of the rate of one contiguous copy, and of the caller's CPU time."""


def scattered_runs(facts: StudyFacts) -> PageTable:
    """A row for each machine and demand: the range over runs, and how many meet the demand."""
    columns = ["machine", "figure", "wanted", "runs from", "to", "runs that meet it"]
    rows = [row for machine in machines_by_evidence(facts) for row in _rows(facts, machine)]
    return PageTable(columns, rows, NOT_MEASURED, columns[2:])


def _rows(facts: StudyFacts, machine: str) -> list[list[object]]:
    called = facts.inputs.called(machine)
    shares = facts.figures.by_fresh_run(machine, "pinned_list_rate", CASE, "contiguous_share")
    times = facts.figures.by_fresh_run(machine, "pinned_list_gather", CASE, "cpu_time")
    share, cpu = f"at least {MIN_SHARE:g}", f"at most {MAX_CPU_S * 1e6:g} µs"
    rows = [
        _row(shares, share, digits, lambda value: value >= MIN_SHARE, "of a contiguous copy"),
        _row(times, cpu, _time, lambda value: value <= MAX_CPU_S, "CPU time of the call"),
    ]
    return [[called, *row] for row in rows if row]


def _row(
    by_run: list[float],
    wanted: str,
    shown: Callable[[float], str],
    meets: Callable[[float], bool],
    figure: str,
) -> list[object]:
    """Empty without runs."""
    if not by_run:
        return []
    ends = shown(min(by_run)), shown(max(by_run))
    return [figure, wanted, *ends, f"{sum(map(meets, by_run))} of {len(by_run)}"]


def _time(seconds: float) -> str:
    return quantity(seconds, "s")
