"""A machine's parameters from its calibration: least squares, intervals by resampling cases."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from analysis.model.judge import JUDGED_MARGIN
from analysis.model.terms import BINDS, TERMS, Floats, Parameters, predicted_seconds, term_seconds
from analysis.results.statistics import CONFIDENCE

RESAMPLES: Final = 200
OUTLIER: Final = 0.02
"""Relative residual from which a case counts less: near the crossing of two terms the larger alone
is too short a time."""
FEWEST_CASES: Final = 15
"""Three for each parameter."""

NAMES: Final = tuple(field.name for field in fields(Parameters))


@dataclass(frozen=True)
class Fit:
    """Parameters and the ends of their intervals; NaN ends where a parameter is only a bound.

    It is one where no fitted case has the parameter's term for its largest by JUDGED_MARGIN.
    """

    parameters: Parameters
    low: Parameters
    high: Parameters


def held_back(cases: int) -> npt.NDArray[np.bool_]:
    """Which of so many cases in a row are kept out of the fit: of every three one.

    First the third of three, then the second, then the first, so that a key that takes turns
    within three cases is not held back with one value only.
    """
    index = np.arange(cases)
    chosen: npt.NDArray[np.bool_] = (index + index // 3) % 3 == 2
    return chosen


def fit(work: Floats, seconds: Floats) -> Fit | None:
    """The parameters that explain `seconds` [cases] of `work` [cases, 4]; None from too few cases.

    Also None where only the copy engine was measured.
    """
    copy_engine = work[:, 3] > 0
    if len(seconds) < FEWEST_CASES or copy_engine.all():
        return None
    start = _start(work, seconds)
    best = _solve(work, seconds, start)
    rng = np.random.default_rng(0)
    groups = [np.flatnonzero(copy_engine), np.flatnonzero(~copy_engine)]
    drawn = [
        np.concatenate([rng.choice(group, len(group)) for group in groups if len(group)])
        for _ in range(RESAMPLES)
    ]
    resampled = np.array([_solve(work[chosen], seconds[chosen], start) for chosen in drawn])
    tail = (1 - CONFIDENCE) / 2
    ends = np.quantile(resampled, [tail, 1 - tail], axis=0)
    terms = term_seconds(work, best)[:, :3]
    lesser = np.sort(terms, axis=1)[:, 1]
    binding = {
        TERMS[index] for index in terms[terms.max(axis=1) > JUDGED_MARGIN * lesser].argmax(1)
    }
    for index, name in enumerate(NAMES):
        if name in BINDS and BINDS[name] not in binding:
            ends[:, index] = np.nan
    if not copy_engine.any():
        unknown = NAMES.index("copy_engine_start_up")
        best[unknown] = np.nan
        ends[:, unknown] = np.nan
    return Fit(Parameters(*best), Parameters(*ends[0]), Parameters(*ends[1]))


def _start(work: Floats, seconds: Floats) -> Floats:
    """Where the search starts: each rate as high, the latency as short as any case shows.

    So each term is the largest somewhere, and every parameter has a case that moves it.
    """
    wire, requests, turns, copy_engine = work.T
    sm = copy_engine == 0
    on_engine = seconds[~sm].min() if not sm.all() else 1e-6
    return np.array(
        [
            (wire / seconds).max(),
            (requests / seconds).max(),
            (seconds[sm] / turns[sm]).min(),
            seconds[sm].min() / 4,
            on_engine / 4,
        ]
    )


def _solve(work: Floats, seconds: Floats, start: Floats) -> Floats:
    """The search is over multiples of `start`; a start-up may be 0, a rate or latency may not."""

    def residuals(multiples: Floats) -> Floats:
        return np.asarray(np.log(predicted_seconds(work, start * multiples) / seconds))

    lowest = [0.0 if name.endswith("start_up") else 0.01 for name in NAMES]
    found = least_squares(
        residuals, np.ones(len(NAMES)), bounds=(lowest, np.inf), loss="soft_l1", f_scale=OUTLIER
    )
    return np.asarray(start * found.x, dtype=float)
