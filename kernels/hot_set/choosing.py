"""The variant to take for a number of requests and misses and a pool, on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.study import parse_case

from .cells import PUBLISHED_WAY, SCATTERED, Cell, cells, fastest, of_variants, step_names

MODEL_LAYERS: Final = 60
SIMPLER_WITHIN: Final = 0.05
"""An earlier step is taken if it is at most this much slower than the fastest one."""


@dataclass(frozen=True)
class Choice:
    """The cell of the chosen variant.

    published_s: seconds of the step in the way of the published kernels
    graph: cell of the fastest graph of MODEL_LAYERS layers; None if not measured
    """

    cell: Cell
    published_s: float
    graph: Cell | None


def choices(facts: StudyFacts) -> list[Choice]:
    """A choice for each machine, pool, number of requests and number of misses, with scattered rows
    and the headline's number of slots.

    Cells without the published way are left out: few variants are measured there.
    """
    slots = parse_case(facts.study.headline)["slots"]
    found = [
        cell
        for cell in cells(facts)
        if cell.place.layout == SCATTERED and cell.place.slots == slots
    ]
    steps = steps_of(facts, found)
    graphs = {(cell.place, cell.misses): cell for cell in fastest(steps) if cell.place.layers > 1}
    published = {
        (cell.place, cell.misses): cell.seconds for cell in found if cell.variant == PUBLISHED_WAY
    }
    single = (one for one in steps if one.place.layers == 1)
    return [
        Choice(
            cell,
            published[cell.place, cell.misses],
            graphs.get((replace(cell.place, layers=MODEL_LAYERS), cell.misses)),
        )
        for cell in fastest(single, SIMPLER_WITHIN)
        if (cell.place, cell.misses) in published
    ]


def steps_of(facts: StudyFacts, found: Sequence[Cell]) -> list[Cell]:
    """Those of the steps among the cells, in the order of the steps."""
    return of_variants(found, step_names(facts))
