"""Verdicts on the rows of a table, with one false-alarm rate for the whole table: the comparison
behind the command and behind every comparison of machines on pages.

Runs differ more than the samples of one run, so runs are the unit. With several runs, a row's
variance between runs is drawn towards that of the table (Smyth, "Linear models and empirical Bayes
methods for assessing differential expression", 2004). It keeps the degrees of freedom of its runs
only, since the rows of a run share its host. With one run on either side, the table shows the
variance: most of its rows have not changed. Holm's procedure ("A simple sequentially rejective
multiple test procedure", 1979) holds the rate for all rows, however they depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
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
TICKS: Final = 2.0
"""No time is taken to repeat better than this many steps of the timer from run to run."""
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
MAX_RUNS: Final = 20
"""More runs a side are not advised."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """A row: times of A and B in seconds, `ratio` of B to A with its CONFIDENCE interval, `p` of
    the whole table (Holm), and the `verdict`. `runs_needed` on either side decide an undecided row;
    None if MAX_RUNS do not."""

    row: Row
    a: float
    b: float
    runs: tuple[int, int]
    ratio: float
    low: float
    high: float
    p: float
    verdict: str
    runs_needed: int | None = None

    @property
    def direction(self) -> str:
        """`slower` or `faster` if B is DIFFERENT; else empty."""
        if self.verdict != DIFFERENT:
            return ""
        return "slower" if self.ratio > 1 else "faster"


def judge(
    rows: Mapping[Row, tuple[Sequence[Run], Sequence[Run]]],
    margin: float = EQUAL_WITHIN,
) -> list[Judged]:
    """Every row, the largest effect first. DIFFERENT times differ by at least `margin`; the
    probability that any of them differs by chance is at most FALSE_ALARMS. EQUAL ones are within
    `margin` with CONFIDENCE for this row alone. All else is UNDECIDED: a lack of difference shows
    nothing."""
    if not rows:
        return []
    means = [
        [float(np.mean(np.log([run.seconds for run in side]))) for side in pair]
        for pair in rows.values()
    ]
    effects: Floats = np.array([b - a for a, b in means])
    counts = np.array([[len(a), len(b)] for a, b in rows.values()])
    variance, freedom = _variances(list(rows.values()), effects, counts)
    errors = np.sqrt(variance * (1 / counts).sum(axis=1))
    p = holm(2 * special.stdtr(freedom, -abs(effects) / errors))
    reach = special.stdtrit(freedom, (1 + CONFIDENCE) / 2) * errors
    limit = math.log1p(margin)
    judged = []
    for place, row in enumerate(rows):
        effect, half = float(effects[place]), float(reach[place])
        verdict = UNDECIDED
        if p[place] <= FALSE_ALARMS and abs(effect) >= limit:
            verdict = DIFFERENT
        elif abs(effect) + half <= limit:
            verdict = EQUAL
        needed = None
        if verdict == UNDECIDED:
            level = FALSE_ALARMS / len(rows)
            needed = runs_needed(effect, float(variance[place]), level, limit)
        judged.append(
            Judged(
                row,
                a=math.exp(means[place][0]),
                b=math.exp(means[place][1]),
                runs=(int(counts[place][0]), int(counts[place][1])),
                ratio=math.exp(effect),
                low=math.exp(max(effect - half, -MAX_EFFECT)),
                high=math.exp(min(effect + half, MAX_EFFECT)),
                p=float(p[place]),
                verdict=verdict,
                runs_needed=needed,
            )
        )
    return sorted(judged, key=lambda row: (-abs(math.log(row.ratio)), row.row))


def holm(p: Floats) -> Floats:
    """Probabilities of the whole table from those of its rows."""
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def runs_needed(effect: float, variance: float, level: float, margin: float) -> int | None:
    """Runs on either side that would decide a row with this effect; None beyond MAX_RUNS."""
    for runs in range(2, MAX_RUNS + 1):
        error = math.sqrt(2 * variance / runs)
        if abs(effect) >= margin:
            is_decided = special.stdtrit(2 * runs - 2, 1 - level / 2) * error <= abs(effect)
        else:
            same = special.stdtrit(2 * runs - 2, (1 + CONFIDENCE) / 2) * error
            is_decided = same <= margin - abs(effect)
        if is_decided:
            return runs
    return None


def _variances(
    rows: Sequence[tuple[Sequence[Run], Sequence[Run]]], effects: Floats, counts: Any
) -> tuple[Floats, Floats]:
    """The variance of one run of each row, and its degrees of freedom."""
    units = run_errors(rows)
    freedom = (counts.sum(axis=1) - 2).astype(float)
    has_repeats = freedom > 0
    variance = np.empty(len(rows))
    if has_repeats.any():
        squares = np.array([sum(map(_squares, pair)) for pair in rows])[has_repeats]
        variance[has_repeats] = _moderated(
            squares / freedom[has_repeats], freedom[has_repeats], units[has_repeats]
        )
    if not has_repeats.all():
        single = ~has_repeats
        variance[single] = _from_table(effects[single], units[single]) / 2
        freedom[single] = SINGLE_FREEDOM
    return variance + FLOOR**2, freedom


def _squares(runs: Sequence[Run]) -> float:
    logs = np.log([run.seconds for run in runs])
    return float(((logs - logs.mean()) ** 2).sum())


def run_errors(rows: Sequence[tuple[Sequence[Run], Sequence[Run]]]) -> Floats:
    """The relative error of a run of each row, as its samples show it: of its median and of the
    timer, and at least FLOOR. Where the spread within the runs is unknown, it is that of the
    table."""
    spreads = [[run.spread for side in pair for run in side] for pair in rows]
    known = [[s for s in of_row if not math.isnan(s)] for of_row in spreads]
    usual = float(np.median([s for of_row in known for s in of_row] or [FLOOR]))
    within = [float(np.sqrt(np.mean(np.square(of_row or [usual])))) for of_row in known]
    ticks = [max(run.tick_s / run.seconds for side in pair for run in side) for pair in rows]
    return np.sqrt(
        np.square(np.multiply(within, MEDIAN_ERROR))
        + np.square(np.multiply(ticks, TICKS))
        + FLOOR**2
    )


def _moderated(squares: Floats, freedom: Floats, units: Floats) -> Floats:
    """Variances drawn towards the table's, in units of the error of a run (Smyth 2004)."""
    if len(squares) < MIN_ROWS:
        return squares
    scaled = np.maximum(squares, 1e-12) / units**2
    logs = np.log(scaled) - special.digamma(freedom / 2) + np.log(freedom / 2)
    excess = float(np.var(logs, ddof=1) - np.mean(special.polygamma(1, freedom / 2)))
    prior = 2 * _trigamma_inverse(excess) if excess > 0 else math.inf
    weight = np.minimum(prior, freedom)
    centre = np.mean(logs)
    if math.isfinite(prior):
        centre += special.digamma(prior / 2) - math.log(prior / 2)
    moderated: Floats = (weight * np.exp(centre) * units**2 + freedom * squares) / (
        weight + freedom
    )
    return moderated


def _trigamma_inverse(value: float) -> float:
    """Newton's method on 1 / trigamma, which is nearly linear."""
    found = 0.5 + 1 / value
    for _ in range(50):
        of_found = special.polygamma(1, found)
        found += of_found * (1 - of_found / value) / special.polygamma(2, found)
    return float(found)


def _from_table(effects: Floats, units: Floats) -> Floats:
    """The variance of each difference of two single runs.

    Half of the rows lie in the shortest interval that holds half of them. Its width is that of rows
    that have not changed, and where it lies is what moved them together, as a slower host does.
    """
    if len(effects) < MIN_ROWS:
        return (SINGLE_SCALE * units) ** 2 + np.median(effects) ** 2
    width, _ = _shortest_half(effects / units)
    _, shift = _shortest_half(effects)
    scale = max(width / _usual_width(len(effects)), MIN_SINGLE_SCALE)
    return (scale * units) ** 2 + shift**2


def _shortest_half(values: Floats) -> tuple[float, float]:
    """Half the width, and the middle, of the shortest interval with half of the values."""
    ordered = np.sort(values)
    count = (len(ordered) + 1) // 2
    widths = ordered[count - 1 :] - ordered[: len(ordered) - count + 1]
    start = int(np.argmin(widths))
    return float(widths[start]) / 2, float(ordered[start] + widths[start] / 2)


@cache
def _usual_width(count: int) -> float:
    """The median of that half width for draws of Student's t distribution, by simulation."""
    draws = np.random.default_rng(1).standard_t(SINGLE_FREEDOM, (400, count))
    return float(np.median([_shortest_half(one)[0] for one in draws]))
