"""The table of chosen shares: the model's choice beside the best of the measured shares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Final

from analysis.api.charts import PageTable, StudyFacts, figures_by_run
from analysis.api.quantities import percent, quantity, ratio, whole
from analysis.api.study import parse_case

from .cells import CLOCK, pool_text

SHARING: Final = "both_on_request"
GIVEN: Final = "share_32nds"
"""Key of a case with a given share of the misses in place."""
WITHIN: Final = 0.05
"""A share is a hit if its time exceeds the shortest one by at most this."""

ByRun = dict[int | None, list[float]]
"""Seconds of each run by given share; None is the chosen one."""


def shares(facts: StudyFacts) -> PageTable:
    """Time with the chosen share and with the best given one, by machine and case."""
    seconds: dict[tuple[str, str], dict[int | None, float]] = defaultdict(dict)
    for row in facts.fresh(CLOCK):
        if row.variant == SHARING:
            case, _, share = row.case.partition(f",{GIVEN}=")
            seconds[row.machine, case][int(share) if share else None] = row.median
    rows = []
    for (machine, case), times in seconds.items():
        chosen = times.pop(None, None)
        if chosen is None or not times:
            continue
        keys = parse_case(case)
        best = min(times, key=times.__getitem__)
        rows.append(
            [
                *(facts.inputs.called(machine), whole(int(keys["requests"]))),
                *(whole(int(keys["misses"])), pool_text(int(keys["pool_mib"]))),
                *(f"{best}/32", quantity(times[best], "s")),
                *(quantity(chosen, "s"), ratio(chosen / times[best])),
            ]
        )
    columns = ["machine", "requests", "misses", "pool", "best share in place", "its time"]
    columns += ["time with the chosen share", "over the best"]
    return PageTable(columns, rows, "No machine has measured these cases yet.", columns[1:])


def repeated_shares(facts: StudyFacts) -> PageTable:
    """Hits of the chosen share, and of the share that was the best one in the other runs, by
    machine. Each run of each case counts once."""
    cases: dict[str, dict[str, ByRun]] = defaultdict(lambda: defaultdict(dict))
    for row in facts.fresh(CLOCK):
        if row.variant == SHARING:
            case, _, share = row.case.partition(f",{GIVEN}=")
            cases[row.machine][case][int(share) if share else None] = figures_by_run(row)
    rows = []
    for machine, by_case in cases.items():
        losses = [loss for times in by_case.values() for loss in _losses(times)]
        if losses:
            chosen, repeated = zip(*losses, strict=True)
            rows.append(
                [
                    *(facts.inputs.called(machine), whole(len(losses))),
                    *(_hits(chosen), ratio(median(chosen))),
                    *(_hits(repeated), ratio(median(repeated))),
                ]
            )
    columns = ["machine", "runs of cases", "chosen share: hits", "median time over the best"]
    columns += ["best share of the other runs: hits", "its median time over the best"]
    return PageTable(columns, rows, "No machine has repeated these cases yet.", columns[1:])


def _losses(times: ByRun) -> Iterator[tuple[float, float]]:
    """Per run, the time over the best share's: with the chosen share, and with the one that has
    the shortest median in the other runs."""
    given = {share: runs for share, runs in times.items() if share is not None}
    counts = {len(runs) for runs in times.values()}
    if not given or None not in times or len(counts) != 1 or max(counts) < 2:
        return
    (count,) = counts
    for run in range(count):
        best = min(runs[run] for runs in given.values())
        others = {s: median(runs[:run] + runs[run + 1 :]) for s, runs in given.items()}
        repeated = min(others, key=others.__getitem__)
        yield times[None][run] / best, given[repeated][run] / best


def _hits(losses: tuple[float, ...]) -> str:
    return percent(sum(loss <= 1 + WITHIN for loss in losses) / len(losses))
