"""The variant to take for a number of requests and misses and a pool, on every machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.study import parse_case
from analysis.api.tables import Point, Times, link_rates

from .cells import (
    FETCH_ALL,
    PUBLISHED_WAY,
    SCATTERED,
    Cell,
    cells,
    fastest,
    of_variants,
    step_names,
)

MODEL_LAYERS: Final = 60


def times_by_machine(facts: StudyFacts) -> Mapping[str, Times]:
    """Seconds of a layer by each step, at points of requests, bytes of the pool and misses: with
    scattered rows and the headline's slots, never less than the link needs.

    Points without the published way are left out: few variants are measured there.
    """
    links = link(facts)
    found: dict[str, dict[Point, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for cell in _steps(facts):
        machine, row_bytes = cell.place.machine, facts.study.constants["token_bytes"]
        if cell.place.layers == 1:
            least = cell.misses * row_bytes / links[machine] if machine in links else 0.0
            found[machine][point_of(cell)][cell.variant] = max(cell.seconds, least)
    complete = {
        machine: {point: ways for point, ways in times.items() if PUBLISHED_WAY in ways}
        for machine, times in found.items()
    }
    return {machine: times for machine, times in complete.items() if times}


def graphs(facts: StudyFacts) -> Mapping[tuple[str, Point], Cell]:
    """The fastest graph of MODEL_LAYERS layers, by machine and point."""
    found = [cell for cell in _steps(facts) if cell.place.layers == MODEL_LAYERS]
    return {(cell.place.machine, point_of(cell)): cell for cell in fastest(found)}


def point_of(cell: Cell) -> Point:
    return cell.place.requests, cell.place.pool_mib * 2**20, cell.misses


def _steps(facts: StudyFacts) -> list[Cell]:
    slots = parse_case(facts.study.headline)["slots"]
    found = (cell for cell in cells(facts) if cell.place.slots == slots)
    return steps_of(facts, [cell for cell in found if cell.place.layout == SCATTERED])


def steps_of(facts: StudyFacts, found: Sequence[Cell]) -> list[Cell]:
    """Those of the steps among the cells, in the order of the steps."""
    return of_variants(found, step_names(facts))


def link(facts: StudyFacts) -> Mapping[str, float]:
    """Highest measured rate of the link in B/s, by machine: of the copy engine, or of the misses
    alone."""
    assert facts.study.limit is not None
    rates = dict(link_rates(facts.inputs.results, facts.study.limit))
    for cell in of_variants(cells(facts), [FETCH_ALL]):
        payload = cell.place.layers * cell.misses * facts.study.constants["token_bytes"]
        machine = cell.place.machine
        rates[machine] = max(rates.get(machine, 0.0), payload / cell.seconds)
    return rates
