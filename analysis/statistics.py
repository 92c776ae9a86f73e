"""Medians, ratios and their 95 % intervals. The noise is between rounds, so rounds are
resampled."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

CONFIDENCE: Final = 0.95
RESAMPLES: Final = 2000
SAME_WITHIN: Final = 0.01
"""Two times count as the same if the interval of their ratio lies within this distance of 1."""

Floats = npt.NDArray[np.float64]


def expanded_confidence(rounds: int, confidence: float = CONFIDENCE) -> float:
    """The percentile level at which a bootstrap of so few values has its nominal coverage.

    This is the expanded percentile interval. A percentile bootstrap of n values is too narrow: by
    sqrt((n-1)/n), and by using normal instead of Student quantiles (Hesterberg 2015, section 5.3,
    "What Teachers Should Know About the Bootstrap").
    """
    from scipy import stats  # here, as it is slow to import and a process that measures needs none

    quantile = stats.t.ppf((1 + confidence) / 2, rounds - 1) * math.sqrt(rounds / (rounds - 1))
    return min(float(2 * stats.norm.cdf(quantile) - 1), 1 - 1 / RESAMPLES)


def median_intervals(rounds: Floats) -> tuple[Floats, Floats, Floats]:
    """Medians of each row of `rounds` [series, rounds] and the ends of their intervals [series].

    With a single round there is no interval, and the ends are NaN.
    """
    medians = np.median(rounds, axis=1)
    if rounds.shape[1] < 2:
        unknown = np.full(len(rounds), np.nan)
        return medians, unknown, unknown
    from scipy import stats

    result = stats.bootstrap(
        (rounds,),
        np.median,
        axis=1,
        n_resamples=RESAMPLES,
        batch=50,
        confidence_level=expanded_confidence(rounds.shape[1]),
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return medians, result.confidence_interval.low, result.confidence_interval.high


def verdict(low: float, high: float) -> str:
    """The verdict from the interval of a speed-up: `faster`, `slower`, `same` or `unclear`."""
    if math.isnan(low) or math.isnan(high):
        return "unclear"
    if low >= 1 - SAME_WITHIN and high <= 1 + SAME_WITHIN:
        return "same"
    if low > 1:
        return "faster"
    if high < 1:
        return "slower"
    return "unclear"
