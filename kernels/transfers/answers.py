"""The questions that the adviser answers, and the nearest measured cell to all others.

A way has an answer up to a factor of NEAR beyond its measured sizes, numbers and payloads. There is
no answer if another way is probably faster. A list has one if the GPU's translations cover its
pool, or if its pieces fill the pool. advice.js computes the same. The model itself predicts no time
below the link's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from analysis.api.quantities import quantity
from analysis.api.tables import NEAR

from .adviser import METRIC, Advice, Adviser, Job, Way
from .calls import in_words
from .chart_parts import binary
from .nearness import factors
from .pools import Pools

NOTABLE: Final = 1.1
"""A way without an answer leaves the others without one if it is predicted to be this many times as
fast."""


@dataclass(frozen=True)
class Cell:
    """A measured cell: a way that moved `count` pieces of `size` bytes in `seconds`."""

    variant: str
    size: int
    count: int
    seconds: float


def answers(adviser: Adviser, job: Job, memory: str = "pinned") -> list[Advice]:
    """Those of `Adviser.advise` whose ways were measured near the job; empty if one that was not is
    notably faster."""
    one_piece = job.as_one_piece()
    advices = adviser.advise(job, memory)
    near = [one for one in advices if _is_near(adviser, one.variant, one_piece)]
    is_fastest = bool(near) and near[0].seconds <= NOTABLE * advices[0].seconds
    return near if is_fastest else []


def left_out(adviser: Adviser, job: Job, memory: str = "pinned") -> list[str]:
    """Ways that can do the job but were not measured near it, in their order."""
    answered = {one.variant for one in answers(adviser, job, memory)}
    able = dict.fromkeys(way.variant for way in _able(adviser, job.as_one_piece(), memory))
    return [variant for variant in able if variant not in answered]


def nearest_cell(adviser: Adviser, job: Job, memory: str = "pinned") -> Cell | None:
    """The measured cell nearest to the job of the ways that can do it; None without such a way.

    Cells with the job's state of the stream and layouts come first, and the fastest of equally near
    ones.
    """
    job = job.as_one_piece()
    cells = (
        (
            (*_unlike(way, job), *factors((size, job.size), (count, job.count)), cell.seconds),
            cell,
        )
        for way in _able(adviser, job, memory)
        for size, count, _ in way.costs[METRIC].misfits[: way.costs[METRIC].measured_here]
        for cell in [Cell(way.variant, size, count, way.costs[METRIC].seconds(size, count))]
    )
    return min(cells, key=lambda one: one[0], default=(None, None))[1]


def refusal(adviser: Adviser, job: Job, memory: str = "pinned") -> str:
    """Says that no way was measured near the job, and names the nearest cell."""
    asked = job.as_one_piece()
    text = f"not measured on {adviser.machine}: {_pieces(asked.count, asked.size)}"
    cell = nearest_cell(adviser, job, memory)
    if cell is None:
        return text
    there = f"{_pieces(cell.count, cell.size)} in {quantity(cell.seconds, 's')}"
    return f"{text}. The nearest measured cell: {there}, by {in_words(cell.variant)}"


def pool_refusal(machine: str, pools: Pools, job: Job, pool: int) -> str:
    """Says that lists from such a pool were not measured, and names the nearest gather of the study
    that measured them; empty if the adviser answers."""
    reach = pools.reach(machine)
    is_list = job.host == "scattered" and job.count > 1
    if not is_list or pool <= max(reach or 0, NEAR * job.payload_bytes):
        return ""
    text = f"not measured on {machine}: lists in a pool of {binary(pool)}"
    if reach is not None:
        text += f", beyond the {reach / 2**20:.0f} MiB that a GPU's translations cover"
    nearest = pools.nearest(machine, job.size, job.count, pool) if job.direction == "h2d" else None
    if nearest is None:
        return text
    there = f"{_pieces(nearest.count, nearest.size)} from {binary(nearest.pool)}"
    there = f"{there} in {quantity(nearest.seconds, 's')}, by {nearest.variant}"
    return f"{text}. The nearest cell of the study pool_gather: {there}"


def _pieces(count: int, size: int) -> str:
    return f"{count} × {binary(size)}"


def _able(adviser: Adviser, job: Job, memory: str) -> Iterator[Way]:
    for way in adviser.ways:
        if memory in ("any", way.memory) and way.can_do(job) and METRIC in way.costs:
            yield way


def _unlike(way: Way, job: Job) -> tuple[bool, int]:
    """Whether the state of the stream differs, and the number of layouts that do."""
    is_other_state, _, layouts, _ = way.distance(job)
    return is_other_state, layouts


def _is_near(adviser: Adviser, variant: str, job: Job) -> bool:
    """Whether size, number and payload are within the way's measured ones, or up to NEAR beyond."""
    cells = [
        (size, count, size * count)
        for way in adviser.ways
        if (way.variant, way.direction) == (variant, job.direction) and METRIC in way.costs
        for size, count, _ in way.costs[METRIC].misfits
    ]
    asked = job.size, job.count, job.payload_bytes
    return all(
        min(known) / NEAR <= one <= max(known) * NEAR
        for one, known in zip(asked, zip(*cells, strict=True), strict=True)
    )
