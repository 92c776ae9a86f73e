"""The time of one way of moving pieces, for any size and count.

time = (latency + count * piece(size)) * correction(size, count), at least size * count * byte(...)

`piece` is linear between measured sizes: a cost per piece plus bytes over a rate, with a bend where
another cost becomes the larger one. It never falls with the size, except at a cliff, where the
driver changes its method. The correction interpolates the errors of the fit at the measured cells.
`byte` is that of the fastest cell of the way itself with pieces that are no smaller and no fewer
bytes in all; beyond its largest cells, the fastest one's without its latency. It is never less than
the link's: a way that was measured with small pieces only would otherwise move large ones faster
than the link can. advice.js computes the same.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, TypeAlias

import numpy as np
from pydantic import Field, Strict

from analysis.api.files import Count, Keys, Natural, key

Number = Annotated[float, Strict()]
NotNegative = Annotated[float, Strict(), Field(ge=0)]
Misfit: TypeAlias = tuple[Count, Count, Number]

FIT_TURNS: Final = 12
"""Turns of the fit, which reweighs a linear one until it fits the logarithms of the times."""
COUNT_WEIGHT: Final = 0.5
"""Distance of two counts a factor of two apart, in distances of two such sizes."""
REACH: Final = 3.0
"""Distance, in doublings of the size, at which a correction has half of its strength."""
MIN_ERROR: Final = 0.02
"""Relative error that a prediction has at least."""
FEW_CELLS: Final = 2.0
"""Factor of the error of a fit that its cells hardly check."""
LEVER: Final = 4.0
"""Two counts at least this factor apart, with pieces of one size, separate the cost of a piece from
that of the call. A fit without such a pair holds up to this factor beyond its cells."""
FEWER: Final = 16.0
"""A fit with such a pair holds for counts down to this factor below its smallest one, and for all
larger ones."""
MOSTLY_BYTES: Final = 4.0
"""A cell that takes at least this many times the latency shows the rate of its bytes."""


@dataclass(frozen=True)
class Timing:
    """Seconds that `count` pieces of `size` bytes took, and their relative uncertainty."""

    size: int
    count: int
    seconds: float
    noise: float = MIN_ERROR


@dataclass(frozen=True)
class Cost(Keys):
    """The fitted parameters of one way."""

    latency_s: NotNegative = key("Seconds that every call takes.")
    sizes: tuple[Count, ...] = key("Measured sizes of pieces in bytes, ascending.")
    piece_s: tuple[NotNegative, ...] = key("Seconds of one more piece, by `sizes`.")
    cliff: Natural = key(
        "Bytes up to which pieces have another cost than larger ones; 0 without such a cliff."
    )
    error: NotNegative = key(
        "Relative error of a prediction, found by leaving out one measured cell at a time."
    )
    noise: NotNegative = key("Relative uncertainty of a measured time.")
    misfits: tuple[Misfit, ...] = key(
        "Of each measured cell its size, its count, and the natural logarithm of the measured time"
        " over the fitted one."
    )
    measured_here: Count = key(
        "Number of these cells that were measured in this situation. Further ones are from a"
        " similar situation, scaled to this one."
    )
    byte_s: NotNegative = key("Seconds that a byte takes at least; 0 without a limit.", 0.0)

    def is_measured(self, size: int, count: int) -> bool:
        """Whether this very cell was measured."""
        return any(one[:2] == (size, count) for one in self.misfits[: self.measured_here])

    def covers(self, size: float, count: float) -> bool:
        """Whether the measured cells determine the time of `count` pieces of `size` bytes.

        Copies of one block say nothing of the cost of a further call.
        """
        by_size: dict[int, list[int]] = {}
        for known_size, known_count, _ in self.misfits:
            by_size.setdefault(known_size, []).append(known_count)
        fewest, most = min(map(min, by_size.values())), max(map(max, by_size.values()))
        if any(max(counts) >= LEVER * min(counts) for counts in by_size.values()):
            return count >= fewest / FEWER
        if most == 1:
            return count == 1
        is_near = fewest / LEVER <= count <= LEVER * most
        return is_near and min(by_size) / LEVER <= size <= LEVER * max(by_size)

    def seconds(self, size: float, count: float) -> float:
        """The predicted time of `count` pieces of `size` bytes."""
        corrected = math.exp(self._correction(size, count, self.misfits))
        least = size * count * self._byte_seconds(size, count)
        return max(self._fitted(size, count) * corrected, least)

    def _byte_seconds(self, size: float, count: float) -> float:
        """Seconds that a byte of these pieces takes at least; 0 without a limit."""
        if not self.byte_s:
            return 0.0
        larger = [
            (large * number, self._fitted(large, number) * math.exp(log_ratio))
            for large, number, log_ratio in self.misfits
            if large >= size
        ]
        reached = [seconds / known for known, seconds in larger if known >= size * count]
        if not reached:
            reached = [
                (seconds - self.latency_s) / known
                for known, seconds in larger
                if seconds >= MOSTLY_BYTES * self.latency_s
            ]
        return max(self.byte_s, min(reached, default=0.0))

    def _fitted(self, size: float, count: float) -> float:
        return self.latency_s + count * self._piece(size)

    def _piece(self, size: float) -> float:
        split = bisect_left(self.sizes, self.cliff + 1)
        side = slice(split) if size <= self.cliff else slice(split, None)
        sizes, seconds = self.sizes[side], self.piece_s[side]
        if not sizes:  # no cell on this side of the cliff
            sizes, seconds = self.sizes, self.piece_s
        if size <= sizes[0] or len(sizes) == 1:
            return seconds[0] * max(1.0, size / sizes[0])
        at = min(max(bisect_left(sizes, size), 1), len(sizes) - 1)

        def line(right: int) -> float:
            """The line through the knots left of `right` and at it."""
            slope = (seconds[right] - seconds[right - 1]) / (sizes[right] - sizes[right - 1])
            return seconds[right] + slope * (size - sizes[right])

        if size > sizes[-1]:
            return max(line(at), seconds[-1] + (size - sizes[-1]) * self.byte_s)
        # Where the larger of two costs counts, the lines of both neighbours meet at the bend.
        before = line(at - 1) if at > 1 else seconds[0]
        after = line(at + 1) if at < len(sizes) - 1 else seconds[-1] * size / sizes[-1]
        return min(line(at), max(before, after))

    def _correction(self, size: float, count: float, misfits: Sequence[Misfit]) -> float:
        """The misfits near this cell, weighed by the inverse fourth power of the distance."""
        total, weights = 0.0, REACH**-4
        for near_size, near_count, log_ratio in misfits:
            if (near_size <= self.cliff) != (size <= self.cliff):
                continue
            by_size = math.log2(size / near_size)
            by_count = COUNT_WEIGHT * math.log2(count / near_count)
            square = by_size * by_size + by_count * by_count
            if square < 1e-12:
                return log_ratio
            weights += square**-2
            total += log_ratio * square**-2
        return total / weights

    def _left_out_error(self) -> float:
        """The error at each cell, corrected by the other cells only."""
        squares = []
        for i, (size, count, log_ratio) in enumerate(self.misfits):
            others = self.misfits[:i] + self.misfits[i + 1 :]
            squares.append((log_ratio - self._correction(size, count, others)) ** 2)
        mean = math.sqrt(sum(squares) / len(squares))
        is_checked = len(self.misfits) > len(self.sizes) + 1
        return max(MIN_ERROR, mean * (1 if is_checked else FEW_CELLS))


def fit_cost(measured: Sequence[Timing], cliff: int = 0, borrowed: Sequence[Timing] = ()) -> Cost:
    """Fit a way to its cells, by least squares of logarithms. ValueError without measured ones.

    Cells that are `borrowed` from a similar situation count as much, but not as measured here.
    """
    if not measured:
        raise ValueError("timings: expected at least one cell, got none")
    timings = [*measured, *borrowed]
    sizes = sorted({one.size for one in timings})
    steps = _steps(sizes, cliff)
    counts = np.array([one.count for one in timings], float)
    at = np.array([sizes.index(one.size) for one in timings])
    design = np.column_stack([np.ones(len(timings)), counts[:, None] * steps[at]])
    solution = _fit_logs(design, np.array([one.seconds for one in timings]))
    fitted = Cost(
        latency_s=_rounded(solution[0]),
        sizes=tuple(sizes),
        piece_s=tuple(map(_rounded, steps @ solution[1:])),
        cliff=cliff,
        error=MIN_ERROR,
        noise=_rounded(np.median([one.noise for one in measured])),
        misfits=(),
        measured_here=len(measured),
    )
    misfits = tuple(
        (
            one.size,
            one.count,
            round(math.log(one.seconds / fitted._fitted(one.size, one.count)), 5),
        )
        for one in timings
    )
    corrected = replace(fitted, misfits=misfits)
    return replace(corrected, error=_rounded(corrected._left_out_error()))


def _rounded(number: float) -> float:
    """Six digits, as a file has them."""
    return float(f"{number:.6g}")


def borrow(measured: Sequence[Timing], donor: Sequence[Timing], cliff: int) -> Sequence[Timing]:
    """The donor's cells that were not measured here, scaled to those that were.

    The scale of a cell is the mean of the measured cells' on the same side of the cliff, weighed by
    the inverse square of the distance. Without such a cell among the donor's sizes it is 1.
    """
    if not donor:
        return ()
    known = fit_cost(donor, cliff)
    common = [one for one in measured if known.sizes[0] <= one.size <= known.sizes[-1]]
    logs = [math.log(one.seconds / known.seconds(one.size, one.count)) for one in common]
    here = {(one.size, one.count) for one in measured}
    borrowed = []
    for one in donor:
        if (one.size, one.count) in here:
            continue
        total = weights = 0.0
        for cell, log in zip(common, logs, strict=True):
            if (cell.size <= cliff) == (one.size <= cliff):
                weight = 1 / _square_distance(cell, one.size, one.count)
                total, weights = total + weight * log, weights + weight
        scale = math.exp(total / weights) if weights else 1.0
        borrowed.append(replace(one, seconds=one.seconds * scale))
    return borrowed


def _square_distance(cell: Timing, size: float, count: float) -> float:
    by_count = COUNT_WEIGHT * math.log2(count / cell.count)
    return math.log2(size / cell.size) ** 2 + by_count**2


def _steps(sizes: Sequence[int], cliff: int) -> np.ndarray:
    """A matrix whose product with increments >= 0 is the time of a piece of each size: it never
    falls with the size but across the cliff."""
    below = np.array(sizes) <= cliff
    is_one_side = below[:, None] == below[None, :]
    steps: np.ndarray = np.tril(np.ones((len(sizes), len(sizes)))) * is_one_side
    return steps


def _fit_logs(design: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Parameters >= 0 whose products with `design` have the logarithms closest to `seconds`'."""
    from scipy.optimize import nnls  # slow to import, and only a fit needs it

    scale = 1 / seconds
    wanted = np.ones(len(seconds))
    for _ in range(FIT_TURNS):
        parameters, _ = nnls(design * scale[:, None], wanted)
        fitted = np.maximum(design @ parameters, 1e-3 * seconds)
        scale, wanted = 1 / fitted, 1 + np.log(seconds / fitted)
    solution: np.ndarray = parameters
    return solution
