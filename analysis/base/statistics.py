"""Medians, ratios and their 95 % intervals.

Runs differ more than the rounds of one run, so figures are based on several runs if there are any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from statistics import median
from typing import Final, NamedTuple

import numpy as np

CONFIDENCE: Final = 0.95
MIN_RUNS: Final = 3
"""Minimum number of runs for a prediction interval of the next run."""
MIN_ROUNDS: Final = 6
"""Minimum number of rounds whose range holds their median with CONFIDENCE."""
SAME_WITHIN: Final = 0.01
"""Two times whose ratio is surely within this of 1 are called the same; a smaller difference is not
called faster or slower."""
_FARTHEST: Final = math.log(1e30)


class Estimate(NamedTuple):
    """A figure with the ends of its interval; NaN ends where there is none."""

    value: float
    low: float
    high: float


def estimate(runs: Sequence[Sequence[float]]) -> Estimate:
    """The median over runs of each run's median over rounds; `runs` are in the order of time.

    With MIN_RUNS or more, the interval predicts the median of the next run. With fewer, it reaches
    over the intervals of their medians, and predicts nothing. A run of a single round has none: the
    interval then holds its value, too, and is NaN if no run has an interval.
    """
    middle = median(float(median(rounds)) for rounds in runs)
    if len(runs) >= MIN_RUNS:
        return Estimate(middle, *prediction_interval(runs))
    ends = [end for rounds in runs if len(rounds) > 1 for end in median_interval(rounds)]
    if not ends:
        return Estimate(middle, math.nan, math.nan)
    ends += [float(rounds[0]) for rounds in runs if len(rounds) == 1]
    return Estimate(middle, min(ends), max(ends))


def prediction_interval(runs: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Where the next run's median over its rounds is to be expected, from the rounds of some runs.

    The normal prediction interval for one future observation, mean ± t s sqrt(1 + 1/n) (Hahn and
    Meeker, "Statistical Intervals", 1991, section 4.7). The medians of few runs may agree by
    chance; so no end is nearer to the mean than rounds alone would take a run's median.
    """
    scale = _scale([value for rounds in runs for value in rounds])
    medians = [scale.to(float(median(rounds))) for rounds in runs]
    distances = [
        [scale.to(value) - middle for value in rounds]
        for rounds, middle in zip(runs, medians, strict=True)
        if len(rounds) > 1
    ]
    spread = student(len(runs) - 1) * float(np.std(medians, ddof=1))
    below, above = (max(spread, noise) for noise in _noise_of_median(distances))
    middle, widening = float(np.mean(medians)), math.sqrt(1 + 1 / len(runs))
    return scale.back(middle - below * widening), scale.back(middle + above * widening)


def _noise_of_median(distances: Sequence[Sequence[float]]) -> tuple[float, float]:
    """How far below and above the true median that of another run's rounds may lie, by chance.

    `distances` are those of each run's rounds to its median. The median of m values of any
    distribution is distributed as their quantile at a Beta((m + 1) / 2, (m + 1) / 2) (David and
    Nagaraja, "Order Statistics", 2003, section 2.1).
    """
    if not distances:
        return 0.0, 0.0
    tail = _tail(round(median(map(len, distances))))
    low, high = np.quantile(np.concatenate(distances), (tail, 1 - tail))
    return -float(low), float(high)


def mean_estimate(drawn: Sequence[float]) -> Estimate:
    """The mean, as `median`, and where that of all values that could be drawn lies: mean ± t s /
    sqrt(n)."""
    scale = _scale(drawn)
    values = [scale.to(value) for value in drawn]
    reach = student(len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    middle = float(np.mean(values))
    return Estimate(scale.back(middle), scale.back(middle - reach), scale.back(middle + reach))


def limit_interval(drawn: Sequence[float]) -> tuple[float, float]:
    """The interval of one more value if very many with the spread of `drawn` were known."""
    from scipy import special

    scale = _scale(drawn)
    values = [scale.to(value) for value in drawn]
    reach = float(special.ndtri((1 + CONFIDENCE) / 2)) * float(np.std(values, ddof=1))
    middle = float(np.mean(values))
    return scale.back(middle - reach), scale.back(middle + reach)


class _Scale(NamedTuple):
    """A transformation of values before they are averaged, and its inverse."""

    to: Callable[[float], float]
    back: Callable[[float], float]


def _scale(values: Sequence[float]) -> _Scale:
    """Logarithms where all are positive, since what moves times from host to host multiplies
    them; an end is then within any physical range. Where none is negative, no end is below zero."""
    if min(values) > 0:
        return _Scale(math.log, lambda x: math.exp(min(max(x, -_FARTHEST), _FARTHEST)))
    return _Scale(float, partial(max, 0.0) if min(values) == 0 else float)


def median_interval(rounds: Sequence[float]) -> tuple[float, float]:
    """The ends of the interval of the median of `rounds`: two of them by their order, which is
    exact for any distribution. NaN for a single one.

    The range of fewer than six rounds holds the median with less than CONFIDENCE. It is widened to
    the interval of their mean where that is wider.
    """
    if len(rounds) < 2:
        return math.nan, math.nan
    ordered = sorted(map(float, rounds))
    rank = _rank(len(ordered))
    low, high = ordered[rank], ordered[-1 - rank]
    if len(ordered) >= MIN_ROUNDS:
        return low, high
    _, mean_low, mean_high = mean_estimate(ordered)
    return min(low, mean_low), max(high, mean_high)


@cache
def _rank(count: int) -> int:
    """Number of values to drop at each end so that the rest still holds the median with
    CONFIDENCE, by the binomial distribution of the values below it."""
    from scipy import (
        special,
    )  # here, as it is slow to import and what measures needs none

    below = special.bdtr(np.arange(count // 2), count, 0.5)
    return max(int(np.searchsorted(below, (1 - CONFIDENCE) / 2, side="right")), 1) - 1


@cache
def _tail(rounds: int) -> float:
    """The lower quantile of all rounds at which the median of `rounds` may still lie."""
    from scipy import special

    half = (rounds + 1) / 2
    return float(special.betaincinv(half, half, (1 - CONFIDENCE) / 2))


@cache
def student(freedom: int) -> float:
    """The quantile of Student's t distribution that bounds an interval with CONFIDENCE."""
    from scipy import special

    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2))


def verdict(ratio: float, low: float, high: float, by_run: Sequence[float] = ()) -> str:
    """The verdict on a speed-up and its interval: `faster`, `slower`, `same` or `unclear`.

    Of several runs, `by_run` are their ratios. All of them must agree on which is the faster, and
    the interval of their mean must not hold 1: four runs agree by chance once in eight.
    """
    if math.isnan(low) or math.isnan(high):
        return "unclear"
    if low >= 1 - SAME_WITHIN and high <= 1 + SAME_WITHIN:
        return "same"
    if len(by_run) >= MIN_RUNS:
        _, mean_low, mean_high = mean_estimate(by_run)
        low, high = min(mean_low, *by_run), max(mean_high, *by_run)
    if low > 1 and ratio >= 1 + SAME_WITHIN:
        return "faster"
    if high < 1 and ratio <= 1 - SAME_WITHIN:
        return "slower"
    return "unclear"
