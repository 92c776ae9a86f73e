"""The table of chosen shares: the model's choice beside the best of the measured shares."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.drawings import PageTable
from analysis.api.quantities import quantity, ratio, whole
from analysis.api.study import parse_case

from .cells import CLOCK

SHARING: Final = "both_on_request"
GIVEN: Final = "share_32nds"
"""Key of a case with a given share of the misses in place."""


def shares(facts: StudyFacts) -> PageTable:
    """Time with the chosen share and with the best given one, by machine and case."""
    seconds: dict[tuple[str, str], dict[int | None, float]] = defaultdict(dict)
    for row in facts.figures.fresh(CLOCK):
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
                *(whole(int(keys["misses"])), f"{int(keys['pool_mib']) / 1024:.3g} GiB"),
                *(f"{best}/32", quantity(times[best], "s")),
                *(quantity(chosen, "s"), ratio(chosen / times[best])),
            ]
        )
    columns = ["machine", "requests", "misses", "pool", "best share in place", "its time"]
    columns += ["time with the chosen share", "over the best"]
    return PageTable(columns, rows, "No machine has measured these cases yet.", columns[1:])
