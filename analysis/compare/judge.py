"""Verdicts on the rows of a table, with one false-alarm rate for the whole table: the comparison
behind the command and behind every comparison of machines on pages.

Runs differ more than the samples of one run, so runs are the unit: with several, the test is
Student's on the logarithms of their medians. With one run on either side, the table shows the
variance: most of its rows have not changed. Holm's procedure ("A simple sequentially rejective
multiple test procedure", 1979) holds the rate for all rows, however they depend on each other.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from analysis.base.statistics import CONFIDENCE
from analysis.compare.side import BLOCKS, Row, Run

DIFFERENT, EQUAL, UNDECIDED = "different", "equal", "undecided"
"""Verdicts on a row."""
EQUAL_WITHIN: Final = 0.05
"""Default margin: a smaller relative difference of two times does not matter."""
FALSE_ALARMS: Final = 1 - CONFIDENCE
FLOOR: Final = 0.001
"""No time is taken to repeat better than this share of it from run to run."""
MIN_ROWS: Final = 8
"""Minimum number of rows that show the variance of a table."""
MEDIAN_ERROR: Final = math.sqrt(math.pi / 2 / BLOCKS)
"""Standard error of a run's median over the spread of its BLOCKS blocks."""
SINGLE_FREEDOM: Final = 2.0
"""Degrees of freedom with one run on either side: few, because rows differ in their variance, and
some move much farther from run to run than either run shows."""
MIN_SINGLE_SCALE: Final = math.sqrt(2)
"""Minimum spread between two single runs over the error of one."""
SINGLE_SCALE: Final = 4.5
"""That ratio for a table with fewer rows, which cannot show it."""
MAX_EFFECT: Final = 100.0
"""Logarithm beyond which the end of an interval says nothing."""

COLUMNS: Final = (*("row", "a", "b", "runs", "ratio", "low", "high", "p", "verdict", "direction"),)
Floats = npt.NDArray[np.float64]


def judge(
    rows: Mapping[Row, tuple[Sequence[Run], Sequence[Run]]],
    margin: float = EQUAL_WITHIN,
) -> pd.DataFrame:
    """Every row, the largest effect first: its name, `row`; times of A and B in seconds and their
    numbers of `runs`; the `ratio` of B to A with its CONFIDENCE interval, `low` to `high`; `p` of
    the whole table (Holm); and the `verdict`, of a different one with the `direction` of B.

    DIFFERENT times differ by at least `margin`; the probability that any of them differs by chance
    is at most FALSE_ALARMS. EQUAL ones are within `margin` with CONFIDENCE for this row alone. All
    else is UNDECIDED: a lack of difference shows nothing."""
    if not rows:
        return pd.DataFrame(columns=COLUMNS)
    logs = [[np.log([run.seconds for run in side]) for side in pair] for pair in rows.values()]
    means: Floats = np.array([[side.mean() for side in pair] for pair in logs])
    effects = means[:, 1] - means[:, 0]
    counts = np.array([[len(side) for side in pair] for pair in logs])
    freedom = (counts.sum(axis=1) - 2).astype(float)
    squares: Floats = np.array([sum(len(s) * s.var() for s in pair) for pair in logs])
    variance = squares / np.maximum(freedom, 1)
    if (single := freedom == 0).any():
        units = _run_errors(list(rows.values()))
        variance[single] = _from_table(effects[single], units[single]) / 2
        freedom[single] = SINGLE_FREEDOM
    errors = np.sqrt((variance + FLOOR**2) * (1 / counts).sum(axis=1))
    p = holm(2 * special.stdtr(freedom, -abs(effects) / errors))
    reach = special.stdtrit(freedom, (1 + CONFIDENCE) / 2) * errors
    limit = math.log1p(margin)
    is_different = (p <= FALSE_ALARMS) & (abs(effects) >= limit)
    is_equal = abs(effects) + reach <= limit
    verdicts = np.where(is_different, DIFFERENT, np.where(is_equal, EQUAL, UNDECIDED))
    directions = np.where(is_different, np.where(effects > 0, "slower", "faster"), "")
    ends = np.exp(np.clip([effects - reach, effects + reach], -MAX_EFFECT, MAX_EFFECT))
    figures = *np.exp(means).T, map(tuple, counts.tolist()), np.exp(effects), *ends, p
    columns = zip(COLUMNS, ([*rows], *map(list, figures), verdicts, directions), strict=True)
    size_first = sorted(zip(-abs(effects), rows, range(len(rows)), strict=True))
    return pd.DataFrame(dict(columns)).iloc[[place for *_, place in size_first]]


def holm(p: Floats) -> Floats:
    """Probabilities of the whole table from those of its rows."""
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def _run_errors(rows: Sequence[tuple[Sequence[Run], Sequence[Run]]]) -> Floats:
    """The relative error of the median of a run of each row, as its samples show it, and at least
    FLOOR. Where the spread within the runs is unknown, it is that of the table."""
    spreads = [[run.spread for side in pair for run in side] for pair in rows]
    known = [[s for s in of_row if not math.isnan(s)] for of_row in spreads]
    usual = float(np.median([s for of_row in known for s in of_row] or [FLOOR]))
    within = [float(np.sqrt(np.mean(np.square(of_row or [usual])))) for of_row in known]
    return np.hypot(np.multiply(within, MEDIAN_ERROR), FLOOR)


def _from_table(effects: Floats, units: Floats) -> Floats:
    """The variance of each difference of two single runs.

    Most rows have not changed. Their median distance from the middle is the noise, and where the
    middle lies is what moved them together, as a slower host does.
    """
    shift = float(np.median(effects))
    scale = SINGLE_SCALE
    if len(effects) >= MIN_ROWS:
        scaled = effects / units
        distance = float(np.median(abs(scaled - np.median(scaled))))
        scale = max(distance / special.stdtrit(SINGLE_FREEDOM, 0.75), MIN_SINGLE_SCALE)
    variance: Floats = (scale * units) ** 2 + shift**2
    return variance
