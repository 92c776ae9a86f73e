"""The rule of every answer that a form, a table or a command gives from measured times.

A question is a point: one number on each axis, such as the size and the number of pieces. Its
corners are the measured points around it: the point itself, or the neighbours on each axis. Among
the ways measured in every corner, the answer is the simplest within 5 % of the fastest.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import ceil, floor, log
from statistics import geometric_mean
from typing import Final, TypeAlias

from analysis.base.quantities import percent, ratio

NEAR: Final = 1.25
"""Largest factor between a question and the outermost measured points, on every axis."""
WITHIN: Final = 0.05
"""A simpler way is taken if it is at most this share slower than the fastest one."""

Point: TypeAlias = tuple[int, ...]
"""A positive number on each axis."""
Times: TypeAlias = Mapping[Point, Mapping[str, float]]
"""Seconds of each way, by measured point."""
Spans: TypeAlias = "list[tuple[int, int, Spans | int]]"
"""First and last number on an axis, both included, with the spans of the next axis, or on the last
axis with the place of an answer in a list."""


@dataclass(frozen=True)
class Answer:
    """The way to use in the cell between `corners`.

    fastest: the fastest of the ways that may be the answer
    seconds: of every way measured in all corners, its times there; the fastest way first
    not_everywhere: ways measured in some corners only
    """

    way: str
    fastest: str
    corners: tuple[Point, ...]
    seconds: Mapping[str, tuple[float, ...]]
    not_everywhere: tuple[str, ...]

    def over_fastest(self, way: str) -> float:
        """Time of a way over the fastest one's, both geometric means over the corners."""
        return geometric_mean(self.seconds[way]) / geometric_mean(next(iter(self.seconds.values())))

    def time_at(self, asked: Point, way: str) -> float:
        """Seconds of a way, interpolated between the logarithms of the corners."""
        return _interpolated(dict(zip(self.corners, self.seconds[way], strict=True)), asked)

    def remarks(self, called: Callable[[str], str]) -> Iterator[str]:
        """Where another way is faster, with the ways as they are `called`."""
        over = self.over_fastest(self.way) / self.over_fastest(self.fastest)
        if over > 1:
            fastest = called(self.fastest)
            yield f"Not the fastest, but simpler: {fastest} is {percent(over - 1)} faster."
        if self.not_everywhere:
            some = "; ".join(map(called, self.not_everywhere))
            yield f"Measured in some of these cells only: {some}."
        best = map(min, zip(*self.seconds.values(), strict=True))
        worst = max(map(float.__truediv__, self.seconds[self.way], best))
        if worst > 1 + WITHIN and len(self.corners) > 1:
            yield f"In one of these cells, another way is {ratio(worst)} as fast."


def answer(
    times: Times,
    simplest_first: Sequence[str],
    corners: Sequence[Point],
    listed: Collection[str] = (),
) -> Answer | None:
    """The answer in the cell between measured `corners`, one of the ways `simplest_first`; None
    without a way that was measured in all of them. `listed` ways are compared with it."""
    seconds = {
        way: tuple(times[point][way] for point in corners)
        for way in (*simplest_first, *listed)
        if corners and all(way in times[point] for point in corners)
    }
    means = {way: geometric_mean(of_way) for way, of_way in seconds.items()}
    offered = [way for way in means if way not in listed]
    if not offered:
        return None
    fastest = min(offered, key=means.__getitem__)
    some = dict.fromkeys(way for point in corners for way in times[point] if way not in seconds)
    way = next(way for way in offered if means[way] <= (1 + WITHIN) * means[fastest])
    ordered = {way: seconds[way] for way in sorted(means, key=means.__getitem__)}
    return Answer(way, fastest, tuple(corners), ordered, tuple(some))


class Grid:
    """Measured points as a tree with a level for each axis."""

    def __init__(self, points: Iterable[Point]) -> None:
        rests: dict[int, list[Point]] = defaultdict(list)
        for value, *others in filter(None, points):
            rests[value].append(tuple(others))
        self._rests = {value: Grid(rests[value]) for value in sorted(rests)}
        self._known: dict[Point, tuple[Point, ...]] = {(): ((),)}

    def corners(self, asked: Point) -> tuple[Point, ...]:
        """The measured points around a question; empty if it lies outside.

        The neighbours on the first axis are those among whose points the rest of the question lies.
        """
        if asked in self._known:
            return self._known[asked]
        first, rest = asked[0], asked[1:]
        around = {v: found for v, grid in self._rests.items() if (found := grid.corners(rest))}
        near = {*[v for v in around if v <= first][-1:], *[v for v in around if v >= first][:1]}
        if len(near) == 1:
            near = {v for v in near if v <= NEAR * first and first <= NEAR * v}
        found = tuple((value, *others) for value in sorted(near) for others in around[value])
        return self._known.setdefault(asked, found)


def _interpolated(seconds: Mapping[Point, float], asked: Point) -> float:
    if not asked:
        return seconds[()]
    by_first: dict[int, dict[Point, float]] = defaultdict(dict)
    for (value, *others), here in seconds.items():
        by_first[value][tuple(others)] = here
    (low, first), *more = [(v, _interpolated(by_first[v], asked[1:])) for v in sorted(by_first)]
    if not more:
        return first
    ((high, last),) = more
    share = log(asked[0] / low) / log(high / low)
    return float(first ** (1 - share) * last**share)


def nearest(points: Iterable[Point], asked: Point) -> Point | None:
    """The measured point that differs least on its worst axis; None without points."""

    def factors(point: Point) -> list[float]:
        """Factors on each axis, the largest first: their order is that of the distances."""
        return sorted((max(a / b, b / a) for a, b in zip(point, asked, strict=True)), reverse=True)

    return min(points, key=factors, default=None)


def all_answers(
    times: Times, simplest_first: Sequence[str], listed: Collection[str] = ()
) -> tuple[list[Answer], Spans]:
    """The answers to all questions, and where each holds. Questions in no span have no answer."""
    grid, found = Grid(times), list[Answer]()
    # Numbers from which on the neighbours of a question on an axis may be others.
    bounds = [
        sorted({n for v in values for n in (ceil(v / NEAR), v, v + 1, floor(v * NEAR) + 1)})
        for values in zip(*times, strict=True)
    ]

    @cache
    def place_of(corners: tuple[Point, ...]) -> int | None:
        """The place of an answer in `found`; None without one."""
        known = answer(times, simplest_first, corners, listed)
        found.extend(filter(None, [known]))
        return len(found) - 1 if known else None

    def spans(asked: Point) -> Spans:
        """The spans of the axes after those of `asked`; empty if they have no answer."""
        here: Spans = []
        is_last = len(asked) == len(bounds) - 1
        for start, end in pairwise(bounds[len(asked)]):
            here_on = (*asked, start)
            inner = place_of(grid.corners(here_on)) if is_last else spans(here_on) or None
            if inner is None:
                continue
            if here and here[-1][1:] == (start - 1, inner):
                start = here.pop()[0]
            here.append((start, end - 1, inner))
        return here

    return found, spans(()) if times else []
