"""Measured cells of this study, as its charts and tables use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.study import case_id, parse_case

CLOCK: Final = "host_time"
"""The time that compares all variants, with and without the CPU."""

FETCH_ALL: Final = "ceiling_misses_alone"
"""Fetches rows that are given, without any look-up."""

PUBLISHED_WAY: Final = "v3_block_per_request"
"""The step in the way of the published kernels."""

SCATTERED: Final = "scattered"
USUAL_KEYS: Final = {"requests", "topk", "slots", "misses", "pool_mib", "layout"}


@dataclass(frozen=True, order=True)
class Place:
    """The work of a step apart from its misses, and the machine."""

    machine: str
    requests: int
    topk: int
    slots: int
    pool_mib: int
    layout: str
    layers: int


@dataclass(frozen=True)
class Cell:
    """The median time of one variant and its interval, NaN from too few runs; `misses` of all
    requests of a layer."""

    place: Place
    misses: int
    variant: str
    seconds: float
    low: float
    high: float


def pool_text(mib: float) -> str:
    """A size as on the page: 188 MiB, 40 GiB."""
    return f"{mib:g} MiB" if mib < 1024 else f"{mib / 1024:g} GiB"


def step_names(facts: StudyFacts) -> list[str]:
    """Steps of the journey and beyond with exact LRU whose rows are those of one layer, in their
    order."""
    size = facts.study.constants["token_bytes"]
    return [
        variant.name
        for variant in facts.study.with_role("step", "beyond")
        if variant.constants["token_bytes"] == size and "policy" not in variant.options
    ]


def cells(facts: StudyFacts, metric: str = CLOCK) -> list[Cell]:
    """Fresh cells whose cases have the usual keys and, at most, `layers`."""
    found = []
    for row in facts.fresh(metric):
        keys = parse_case(row.case)
        if keys.keys() - {"layers"} != USUAL_KEYS:
            continue
        numbers = {key: int(value) for key, value in keys.items() if key != "layout"}
        misses = numbers.pop("misses")
        place = Place(row.machine, layout=str(keys["layout"]), **{"layers": 1, **numbers})
        times = row.median, row.ci_low, row.ci_high
        found.append(Cell(place, misses, row.variant, *times))
    return found


def case_of(cell: Cell) -> str:
    """The case of a cell of one layer."""
    place = cell.place
    return case_id(
        {
            "requests": place.requests,
            "topk": place.topk,
            "slots": place.slots,
            "misses": cell.misses,
            "pool_mib": place.pool_mib,
            "layout": place.layout,
        }
    )


def of_variants(found: Iterable[Cell], names: Sequence[str]) -> list[Cell]:
    """The cells of these variants, in the order of their names."""
    known = [cell for cell in found if cell.variant in names]
    return sorted(known, key=lambda cell: names.index(cell.variant))


def fastest(found: Iterable[Cell]) -> list[Cell]:
    """The fastest cell of each place and number of misses, by place and misses."""

    def key(cell: Cell) -> tuple[Place, int]:
        return cell.place, cell.misses

    groups = groupby(sorted(found, key=key), key)
    return [min(alike, key=lambda cell: cell.seconds) for _, alike in groups]


def by_place(found: Iterable[Cell]) -> Iterator[tuple[Place, list[Cell]]]:
    """Each place with its cells in the order of their misses."""
    ordered = sorted(found, key=lambda cell: (cell.place, cell.misses))
    for place, group in groupby(ordered, lambda cell: cell.place):
        yield place, list(group)


def seconds_per_row(curve: Sequence[Cell]) -> float:
    """Additional time for each further missing row: between the two largest numbers of misses."""
    one, other = curve[-2:]
    return (other.seconds - one.seconds) / (other.misses - one.misses)
