"""Tests of a table of two sides: which rows differ, and which are equal within a margin.

Runs are the unit, since they differ more than the samples of one run. Both tests are of the mean
logarithm of the runs, with Welch's t distribution, because the sides have different numbers of runs
and hosts. A row is equal if two one-sided tests show that its ratio lies within the margin
(Schuirmann, "A comparison of the two one-sided tests procedure", 1987): a lack of difference alone
shows nothing. Holm's procedure holds each test's rate of false alarms for the whole table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.base.statistics import CONFIDENCE, MIN_RUNS

FALSE_ALARMS: Final = 1 - CONFIDENCE
EQUAL_WITHIN: Final = 0.05
"""Two sides are equal if their ratio surely differs from 1 by less than this."""
MIN_SPREAD: Final = 0.001
"""No figure is taken to repeat better than this share of it from run to run."""

DIFFERENT: Final = "different"
EQUAL: Final = "equal"
UNDECIDED: Final = "undecided"
FEW_RUNS: Final = "too few runs"
"""Decisions on a row."""

Runs = Sequence[float]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Decided:
    """The ratio of the second side to the first with its CONFIDENCE interval, NaN with fewer than
    MIN_RUNS runs on a side; `p_different` and `p_equal` are of the whole table (Holm)."""

    ratio: float
    low: float
    high: float
    p_different: float
    p_equal: float
    decision: str


@dataclass(frozen=True)
class _Effect:
    """The difference of two mean logarithms, its standard error and degrees of freedom."""

    size: float
    error: float
    freedom: float

    def p_different(self) -> float:
        return 2 * _below(self.freedom, -abs(self.size) / self.error)

    def p_equal(self, margin: float) -> float:
        """The larger probability of the two one-sided tests; `margin` is a logarithm."""
        return _below(self.freedom, (abs(self.size) - margin) / self.error)


def decide(rows: Sequence[tuple[Runs, Runs]]) -> list[Decided]:
    """A decision on every row, in their order. Each row has the positive figures of the runs of
    both sides. A difference that is surely smaller than EQUAL_WITHIN counts as equal."""
    effects = [_effect(*sides) if min(map(len, sides)) >= MIN_RUNS else None for sides in rows]
    known = [one for one in effects if one is not None]
    of_tables = zip(
        holm(np.array([one.p_different() for one in known])),
        holm(np.array([one.p_equal(math.log1p(EQUAL_WITHIN)) for one in known])),
        strict=True,
    )
    decided = []
    for sides, effect in zip(rows, effects, strict=True):
        if effect is None:
            medians = [float(np.median(side)) if len(side) else math.nan for side in sides]
            nan = math.nan
            decided.append(Decided(medians[1] / medians[0], nan, nan, nan, nan, FEW_RUNS))
            continue
        different, equal = next(of_tables)
        reach = _quantile(effect.freedom, (1 + CONFIDENCE) / 2) * effect.error
        decision = DIFFERENT if different <= FALSE_ALARMS else UNDECIDED
        decided.append(
            Decided(
                ratio=math.exp(effect.size),
                low=math.exp(effect.size - reach),
                high=math.exp(effect.size + reach),
                p_different=float(different),
                p_equal=float(equal),
                decision=EQUAL if equal <= FALSE_ALARMS else decision,
            )
        )
    return decided


def _effect(one: Runs, other: Runs) -> _Effect:
    """Welch's statistic of the logarithms."""
    logs = [np.log(np.asarray(side, np.float64)) for side in (one, other)]
    shares = [max(float(np.var(side, ddof=1)), MIN_SPREAD**2) / len(side) for side in logs]
    freedom = sum(shares) ** 2 / sum(
        share**2 / (len(side) - 1) for share, side in zip(shares, logs, strict=True)
    )
    return _Effect(float(logs[1].mean() - logs[0].mean()), math.sqrt(sum(shares)), freedom)


def holm(p: Floats) -> Floats:
    """Probabilities of the whole table from those of its rows, however the rows depend on each
    other (Holm, "A simple sequentially rejective multiple test procedure", 1979)."""
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    found = np.empty(len(p))
    found[order] = np.minimum(steps, 1.0)
    return found


def _below(freedom: float, value: float) -> float:
    """The cumulative distribution function of Student's t."""
    from scipy import special  # here, as it is slow to import and what measures needs none

    return float(special.stdtr(freedom, value))


def _quantile(freedom: float, share: float) -> float:
    from scipy import special

    return float(special.stdtrit(freedom, share))
