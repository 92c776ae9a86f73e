"""The variant to take for a number of requests and misses and a pool, on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from analysis.api.charts import StudyFacts

from .cells import PUBLISHED_WAY, SCATTERED, Cell, cells, fastest, of_variants, step_names

MODEL_LAYERS: Final = 60
SIMPLER_WITHIN: Final = 0.05
"""An earlier step is taken if it is at most this much slower than the fastest one."""


@dataclass(frozen=True)
class Choice:
    """The cell of the chosen variant.

    published_s: seconds of the step in the way of the published kernels; None if not measured
    graph: cell of the fastest graph of MODEL_LAYERS layers; None if not measured
    """

    cell: Cell
    published_s: float | None
    graph: Cell | None


def choices(facts: StudyFacts) -> list[Choice]:
    """A choice for each machine, pool, number of requests and number of misses that was measured,
    with scattered rows."""
    found = [cell for cell in cells(facts) if cell.place.layout == SCATTERED]
    steps = steps_of(facts, found)
    graphs = {(cell.place, cell.misses): cell for cell in fastest(steps) if cell.place.layers > 1}
    published = {
        (cell.place, cell.misses): cell.seconds for cell in found if cell.variant == PUBLISHED_WAY
    }
    single = (one for one in steps if one.place.layers == 1)
    return [
        Choice(
            cell,
            published.get((cell.place, cell.misses)),
            graphs.get((replace(cell.place, layers=MODEL_LAYERS), cell.misses)),
        )
        for cell in fastest(single, SIMPLER_WITHIN)
    ]


def steps_of(facts: StudyFacts, found: Sequence[Cell]) -> list[Cell]:
    """Those of the steps among the cells, in the order of the steps."""
    return of_variants(found, step_names(facts))
