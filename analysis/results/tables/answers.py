"""The rule of every answer that a form, a table or a command gives from measured times.

A question is a point: one number on each axis, such as the size and the number of pieces. Its
corners are the measured points around it: the point itself, or the neighbours on each axis. Among
the ways measured in every corner, the answer is the simplest within 5 % of the fastest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor
from pathlib import Path
from statistics import geometric_mean
from typing import Final, TypeAlias

import pandas as pd

from analysis.base.quantities import percent, ratio
from analysis.results.collect import collect
from analysis.results.tables.summary import summarise
from analysis.study import Study, find_study
from analysis.study.keys import Limit

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

    seconds: of every way measured in all corners, its times there; the fastest way first
    not_everywhere: ways measured in some corners only
    """

    way: str
    corners: tuple[Point, ...]
    seconds: Mapping[str, tuple[float, ...]]
    not_everywhere: tuple[str, ...]

    def over_fastest(self, way: str) -> float:
        """Time of a way over the fastest one's, both geometric means over the corners."""
        return geometric_mean(self.seconds[way]) / geometric_mean(next(iter(self.seconds.values())))

    def remarks(self, called: Callable[[str], str]) -> Iterator[str]:
        """Where another way is faster, with the ways as they are `called`."""
        if (over := self.over_fastest(self.way)) > 1:
            fastest = called(next(iter(self.seconds)))
            yield f"Not the fastest, but simpler: {fastest} is {percent(over - 1)} faster."
        best = map(min, zip(*self.seconds.values(), strict=True))
        worst = max(map(float.__truediv__, self.seconds[self.way], best))
        if worst > 1 + WITHIN and len(self.corners) > 1:
            yield f"In one of these cells, another way is {ratio(worst)} as fast."


def answer(times: Times, simplest_first: Sequence[str], asked: Point) -> Answer | None:
    """The answer to a question; None if it was not measured."""
    at = corners(times, asked)
    seconds = {
        way: tuple(times[point][way] for point in at)
        for way in simplest_first
        if at and all(way in times[point] for point in at)
    }
    if not seconds:
        return None
    means = {way: geometric_mean(of_way) for way, of_way in seconds.items()}
    fastest = sorted(means, key=means.__getitem__)
    limit = (1 + WITHIN) * means[fastest[0]]
    some = dict.fromkeys(way for point in at for way in times[point] if way not in seconds)
    way = next(way for way in seconds if means[way] <= limit)
    return Answer(way, at, {way: seconds[way] for way in fastest}, tuple(some))


def corners(points: Iterable[Point], asked: Point) -> tuple[Point, ...]:
    """The measured points around a question; empty if it lies outside.

    The neighbours on the first axis are those among whose points the rest of the question lies.
    """
    if not asked:
        return ((),)
    first, *rest = asked
    rests: dict[int, list[Point]] = defaultdict(list)
    for value, *others in points:
        rests[value].append(tuple(others))
    around = {value: found for value in rests if (found := corners(rests[value], tuple(rest)))}
    near = {
        *sorted(v for v in around if v <= first)[-1:],
        *sorted(v for v in around if v >= first)[:1],
    }
    if len(near) == 1:
        near = {v for v in near if v <= NEAR * first and first <= NEAR * v}
    return tuple((value, *others) for value in sorted(near) for others in around[value])


def nearest(points: Iterable[Point], asked: Point) -> Point | None:
    """The measured point that differs least on its worst axis; None without points."""

    def factors(point: Point) -> list[float]:
        """Factors on each axis, the largest first: their order is that of the distances."""
        return sorted((max(a / b, b / a) for a, b in zip(point, asked, strict=True)), reverse=True)

    return min(points, key=factors, default=None)


def all_answers(times: Times, simplest_first: Sequence[str]) -> tuple[list[Answer], Spans]:
    """The answers to all questions, and where each holds. Questions in no span have no answer."""
    found: dict[tuple[Point, ...], tuple[int, Answer]] = {}
    # Numbers from which on the neighbours of a question on an axis may be others.
    bounds = [
        sorted({n for v in values for n in (ceil(v / NEAR), v, v + 1, floor(v * NEAR) + 1)})
        for values in zip(*times, strict=True)
    ]

    def spans(asked: Point) -> Spans | int | None:
        """The spans of the axes after those of `asked`; None if they have no answer."""
        if len(asked) == len(bounds):
            known = answer(times, simplest_first, asked)
            return found.setdefault(known.corners, (len(found), known))[0] if known else None
        here: Spans = []
        for start, end in pairwise(bounds[len(asked)]):
            if (inner := spans((*asked, start))) is None:
                continue
            if here and here[-1][1:] == (start - 1, inner):
                start = here.pop()[0]
            here.append((start, end - 1, inner))
        return here or None

    made = spans(()) if times else []
    assert isinstance(made, list), "a measured point has an answer"
    return [known for _, known in found.values()], made


def fresh_rows(results: Path, study: Study) -> pd.DataFrame:
    """Fresh and verified rows of a study's summary, read from the folder of results."""
    studies = {study.name: study}
    summary = summarise(collect(results, studies, only=studies).samples, studies)
    return summary[summary["stale"].eq(0) & summary["verified"].eq(1)]


def link_rates(results: Path, limit: Limit) -> Mapping[str, float]:
    """Highest measured payload rate of a study's `limit` in B/s, by machine."""
    study = find_study(limit.study)
    rows = fresh_rows(results, study)
    rows = rows[(rows["variant"] == limit.variant) & rows["metric"].isin(study.time_metrics)]
    rates = rows["case"].map(lambda case: study.payloads[limit.variant, case]) / rows["median"]
    return {str(machine): rate for machine, rate in rates.groupby(rows["machine"]).max().items()}
