"""Medians, ratios and their 95 % intervals. What differs between runs is more than what differs
between the rounds of one, so a figure stands on several runs where there are some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import median
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

CONFIDENCE: Final = 0.95
FEWEST_RUNS: Final = 3
"""From so many runs on, an interval is for a run that has not been made yet."""
FEWEST_ROUNDS: Final = 6
"""From so many rounds on, their range holds their median with CONFIDENCE."""
SAME_WITHIN: Final = 0.01
"""Two times whose ratio is surely within this of 1 are called the same; a smaller difference is not
called faster or slower."""

Floats = npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """A median with the ends of its interval; NaN ends where there is none."""

    median: float
    low: float
    high: float


def estimate(runs: Sequence[Sequence[float]]) -> Estimate:
    """The median over runs of each run's median over rounds; `runs` are in the order of time.

    From FEWEST_RUNS on the interval is one for the median of another run. From fewer runs it can
    only be that of the newest one: where its own median lies.
    """
    medians = [float(median(rounds)) for rounds in runs]
    middle = median(medians)
    if len(medians) >= FEWEST_RUNS:
        return Estimate(middle, *prediction_interval(medians))
    return Estimate(medians[-1], *median_interval(runs[-1]))


def prediction_interval(medians: Sequence[float]) -> tuple[float, float]:
    """Where the next run's median is to be expected, from those of some runs.

    The normal prediction interval for one future observation, mean ± t s sqrt(1 + 1/n) (Hahn and
    Meeker, "Statistical Intervals", 1991, section 4.7).
    """
    return _interval(medians, math.sqrt(1 + 1 / len(medians)))


def mean_interval(medians: Sequence[float]) -> tuple[float, float]:
    """Where the mean over all runs that could be made lies: mean ± t s / sqrt(n)."""
    return _interval(medians, 1 / math.sqrt(len(medians)))


def _interval(medians: Sequence[float], deviations: float) -> tuple[float, float]:
    """Mean ± t times so many standard deviations; of logarithms where all are positive, since
    what moves times from host to host multiplies them."""
    values = np.asarray(medians, float)
    is_positive = bool((values > 0).all())
    values = np.log(values) if is_positive else values
    reach = _student(len(values) - 1) * float(values.std(ddof=1)) * deviations
    low, high = float(values.mean()) - reach, float(values.mean()) + reach
    return (math.exp(low), math.exp(high)) if is_positive else (low, high)


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
    if len(ordered) >= FEWEST_ROUNDS:
        return low, high
    mean_low, mean_high = mean_interval(ordered)
    return min(low, mean_low), max(high, mean_high)


@cache
def _rank(count: int) -> int:
    """How many values may be left out at each end, so that the median is still between the rest
    with CONFIDENCE: the binomial distribution of those below it."""
    from scipy import stats  # here, as it is slow to import and a process that measures needs none

    below = stats.binom.cdf(np.arange(count // 2), count, 0.5)
    return max(int(np.searchsorted(below, (1 - CONFIDENCE) / 2, side="right")), 1) - 1


@cache
def _student(freedom: int) -> float:
    from scipy import stats

    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))


def verdict(ratio: float, low: float, high: float, by_run: Sequence[float] = ()) -> str:
    """What a speed-up and its interval say: `faster`, `slower`, `same` or `unclear`.

    Of several runs, `by_run` are their ratios. All of them must agree on which is the faster, and
    the interval of their mean must not hold 1: four runs agree by chance once in eight.
    """
    if math.isnan(low) or math.isnan(high):
        return "unclear"
    if low >= 1 - SAME_WITHIN and high <= 1 + SAME_WITHIN:
        return "same"
    if len(by_run) >= FEWEST_RUNS:
        mean_low, mean_high = mean_interval(by_run)
        low, high = min(mean_low, *by_run), max(mean_high, *by_run)
    if low > 1 and ratio >= 1 + SAME_WITHIN:
        return "faster"
    if high < 1 and ratio <= 1 - SAME_WITHIN:
        return "slower"
    return "unclear"
