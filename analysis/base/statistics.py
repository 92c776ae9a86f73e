"""Medians, ratios and their 95 % intervals.

Samples of a visit, visits of a round and rounds of a run are each reduced to their median. Figures
are based on runs, which differ more than the rounds of one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
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
"""An end of an interval is within any physical range."""


@dataclass(frozen=True)
class Kind:
    """A kind of values: the relative standard deviation that is added to the measured one, since
    few runs may agree by chance, and the lowest and highest possible value."""

    added: float = 0.0
    low: float = 0.0
    high: float = math.inf


TIME: Final = Kind(added=SAME_WITHIN)
"""Times, rates, and ratios of those."""
COUNT: Final = Kind()
"""Counts, bytes and energies."""
SHARE: Final = Kind(high=1.0)
DIFFERENCE: Final = Kind(low=-math.inf)


def kind_of(unit: str, *, is_share: bool = False) -> Kind:
    """The kind of a metric by its unit."""
    if is_share:
        return SHARE
    return TIME if unit in ("s", "GB/s", "B/s") else COUNT


class Estimate(NamedTuple):
    """A figure with the ends of its interval; NaN ends where there is none."""

    value: float
    low: float
    high: float


def estimate(runs: Sequence[Sequence[float]], kind: Kind = TIME) -> Estimate:
    """The median over runs of each run's median over rounds.

    With MIN_RUNS or more, the interval predicts the median of the next run, around the mean of the
    runs. With two, it spans both runs' intervals; a run of a single round counts by its value. NaN
    ends if no run has an interval.
    """
    medians = [float(median(rounds)) for rounds in runs]
    middle = median(medians)
    if len(runs) >= MIN_RUNS:
        return Estimate(middle, *prediction_interval(medians, kind))
    ends = [end for rounds in runs if len(rounds) > 1 for end in median_interval(rounds, kind)]
    if not ends:
        return Estimate(middle, math.nan, math.nan)
    ends += [float(rounds[0]) for rounds in runs if len(rounds) == 1]
    return Estimate(middle, min(ends), max(ends))


def prediction_interval(medians: Sequence[float], kind: Kind = TIME) -> tuple[float, float]:
    """Where the next run's median is to be expected, from those of MIN_RUNS runs or more.

    The normal prediction interval for one future observation, mean ± t s sqrt(1 + 1/n) (Hahn and
    Meeker, "Statistical Intervals", 1991, section 4.7).
    """
    _, low, high = _normal(medians, kind, kind.added, math.sqrt(1 + 1 / len(medians)))
    return low, high


def mean_estimate(values: Sequence[float], kind: Kind = TIME) -> Estimate:
    """The mean of values that were drawn, and where that of all is to be expected: mean ± t s /
    sqrt(n). The mean is geometric where the values vary by factors."""
    return _normal(values, kind, 0.0, 1 / math.sqrt(len(values)))


def _normal(values: Sequence[float], kind: Kind, added: float, factor: float) -> Estimate:
    """mean ± t s `factor` on the scale on which the values vary: logarithmic, as what slows down a
    host multiplies times, unless they can be 0 or negative."""
    is_log = kind.low == 0 and kind.high == math.inf and min(values) > 0
    scaled = [math.log(one) if is_log else float(one) for one in values]
    middle = math.fsum(scaled) / len(scaled)  # of few values, in a tenth of NumPy's time
    spread = math.sqrt(sum((one - middle) ** 2 for one in scaled) / (len(scaled) - 1))
    reach = student(len(scaled) - 1) * math.hypot(spread, added * is_log) * factor
    low, high = middle - reach, middle + reach
    if is_log:
        low, high = math.exp(max(low, -_FARTHEST)), math.exp(min(high, _FARTHEST))
        return Estimate(math.exp(middle), low, high)
    return Estimate(middle, max(low, kind.low), min(high, kind.high))


def outside_of_others(medians: Sequence[float], kind: Kind = TIME) -> list[bool]:
    """Whether each run lies outside the prediction interval of the others; nowhere if these are
    fewer than MIN_RUNS."""
    if len(medians) <= MIN_RUNS:
        return [False] * len(medians)
    others = ([*medians[:index], *medians[index + 1 :]] for index in range(len(medians)))
    intervals = (prediction_interval(runs, kind) for runs in others)
    return [
        not low - 1e-9 * abs(one) <= one <= high + 1e-9 * abs(one)
        for one, (low, high) in zip(medians, intervals, strict=True)
    ]


def median_interval(rounds: Sequence[float], kind: Kind = TIME) -> tuple[float, float]:
    """The ends of the interval of the median of `rounds`: two of them by their order, which is
    exact for any distribution. NaN for a single one.

    The range of fewer than MIN_ROUNDS rounds holds the median with less than CONFIDENCE. It is
    widened to the interval of their mean where that is wider.
    """
    if len(rounds) < 2:
        return math.nan, math.nan
    ordered = sorted(map(float, rounds))
    rank = _rank(len(ordered))
    low, high = ordered[rank], ordered[-1 - rank]
    if len(ordered) >= MIN_ROUNDS:
        return low, high
    _, mean_low, mean_high = mean_estimate(ordered, kind)
    return min(low, mean_low), max(high, mean_high)


@cache
def _rank(count: int) -> int:
    """Number of values to drop at each end so that the rest still holds the median with
    CONFIDENCE, by the binomial distribution of the values below it."""
    from scipy import special  # slow to import, and measuring needs none

    below = special.bdtr(np.arange(count // 2), count, 0.5)
    return max(int(np.searchsorted(below, (1 - CONFIDENCE) / 2, side="right")), 1) - 1


@cache
def student(freedom: int) -> float:
    """The quantile of Student's t distribution that bounds an interval with CONFIDENCE."""
    from scipy import special

    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2))


def verdict(ratio: float, low: float, high: float, by_run: Sequence[float] = ()) -> str:
    """The verdict on a speed-up: `faster`, `slower`, `same` or `unclear`.

    MIN_RUNS or more ratios `by_run` decide by themselves and by the interval of their geometric
    mean. Both must agree: four runs alone agree by chance once in eight. Of fewer, the interval
    from `low` to `high` decides.
    """
    if len(by_run) >= MIN_RUNS:
        _, mean_low, mean_high = mean_estimate(by_run)
        low, high = min(mean_low, *by_run), max(mean_high, *by_run)
    if low >= 1 - SAME_WITHIN and high <= 1 + SAME_WITHIN:
        return "same"
    if low > 1 and ratio >= 1 + SAME_WITHIN:
        return "faster"
    if high < 1 and ratio <= 1 - SAME_WITHIN:
        return "slower"
    return "unclear"
