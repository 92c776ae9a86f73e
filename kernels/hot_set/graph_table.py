"""The table of graphs of layers: what a step adds to the fetch of its misses."""

from __future__ import annotations

from typing import Final

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.quantities import quantity, ratio, whole

from .cells import (
    FETCH_ALL,
    PUBLISHED_WAY,
    Cell,
    by_place,
    cells,
    of_variants,
    pool_text,
    step_names,
)

DEVICE_CLOCK: Final = "gpu_time"
STEPS: Final = (PUBLISHED_WAY, "lookup_ready", "dependent_launch")
"""A block per request, the look-up prepared before the ids, and layers that start early as well."""


def added_times(facts: StudyFacts) -> PageTable:
    """Device time per layer of the misses alone, and what each step adds to it, by machine and
    number of misses."""
    found = of_variants(cells(facts, DEVICE_CLOCK), [FETCH_ALL, *step_names(facts)])
    rows = []
    for place, of_place in by_place(cell for cell in found if cell.place.layers > 1):
        for misses in sorted({cell.misses for cell in of_place}):
            times = {cell.variant: _per_layer(cell) for cell in of_place if cell.misses == misses}
            if FETCH_ALL not in times or not times.keys() & {*STEPS}:
                continue
            alone = times.pop(FETCH_ALL)
            added = [quantity(times[s] - alone, "s") if s in times else "" for s in STEPS]
            rows.append(
                [
                    *(facts.inputs.called(place.machine), whole(misses)),
                    *(pool_text(place.pool_mib), quantity(alone, "s"), *added),
                    ratio(min(times.values()) / alone),
                ]
            )
    columns = ["machine", "misses", "pool", "misses alone", "a block per request adds"]
    columns += ["look-up made ready adds", "and started early adds", "fastest over misses alone"]
    return PageTable(columns, rows, "No machine has measured these graphs yet.", columns[1:])


def _per_layer(cell: Cell) -> float:
    return cell.seconds / cell.place.layers
