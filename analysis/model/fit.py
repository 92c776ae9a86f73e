"""A machine's parameters from its calibration: least squares, intervals by resampling residuals.

In two steps. Cases all of whose requests are whole lines leave no doubt of what crosses the wire:
they give the link's rate, the start-ups, and what a multiprocessor and a warp can do. What requests
for less cost is then found from the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from analysis.model.judge import JUDGED_MARGIN
from analysis.model.terms import (
    BINDS,
    TERMS,
    WORK,
    Floats,
    Parameters,
    predicted_seconds,
    term_seconds,
)
from analysis.model.traffic import FRAMING_BYTES, HEADER_BYTES, LINE_BYTES, SECTOR_BYTES
from analysis.statistics import CONFIDENCE

RESAMPLES: Final = 200
FLOOR: Final = 0.005
"""Relative error of a case that repeats exactly: no model is nearer than that."""
CAUCHY_SCALE: Final = 2.385
"""Errors up to which a miss counts about as in least squares: 95 % as efficient at normal noise
(Holland and Welsch, "Robust regression using iteratively reweighted least-squares", 1977)."""
FEWEST_CASES: Final = 24
"""Three for each parameter."""

NAMES: Final = tuple(field.name for field in fields(Parameters))
SECOND: Final = ("half_line", "request_rate")
"""Found in the second step."""
MAY_BE_NONE: Final = ("half_line", "start_up", "index_latency", "copy_engine_start_up")
"""Parameters that can be 0; a rate or the latency of a turn cannot."""


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


def fit(work: Floats, seconds: Floats, errors: Floats) -> Fit | None:
    """The parameters that explain `seconds` [cases] of `work` [cases, 7]; None from too few cases.

    `errors` [cases] are relative: a case counts less, the less sure it is. Also None where the SMs
    did not read both whole lines and parts.
    """
    copy_engine = work[:, WORK.index("copy engine")] > 0
    whole = _whole_lines(work)
    if len(seconds) < FEWEST_CASES or whole.all() or not (whole & ~copy_engine).any():
        return None
    start = _start(work, seconds)
    best = _solve(work, seconds, errors, start)
    unsure = np.hypot(errors, FLOOR)
    fitted = predicted_seconds(work, best)
    misses = np.log(seconds / fitted) / unsure
    rng = np.random.default_rng(0)
    resampled = np.array(
        [
            _solve(work, fitted * np.exp(unsure * rng.choice(misses, len(misses))), errors, start)
            for _ in range(RESAMPLES)
        ]
    )
    tail = (1 - CONFIDENCE) / 2
    ends = np.quantile(resampled, [tail, 1 - tail], axis=0)
    terms = term_seconds(work, best)[:, :-1]
    lesser = np.sort(terms, axis=1)[:, -2]
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


def _whole_lines(work: Floats) -> npt.NDArray[np.bool_]:
    """Which cases have no request for less than a line; the copy engine's are among them."""
    line = LINE_BYTES + HEADER_BYTES + FRAMING_BYTES
    wire, requests = work[:, WORK.index("wire")], work[:, WORK.index("requests")]
    whole: npt.NDArray[np.bool_] = wire > requests * (line - 0.5)
    return whole


def _start(work: Floats, seconds: Floats) -> Floats:
    """Where the search starts: each rate as high, the latency as short as any case shows.

    So each term is the largest somewhere, and every parameter has a case that moves it.
    """
    wire, _, requests, requests_of_an_sm, turns, _, copy_engine = work.T
    sm = copy_engine == 0
    on_engine = seconds[~sm].min() if not sm.all() else 1e-6
    start = Parameters(
        link_rate=(wire / seconds).max(),
        half_line=SECTOR_BYTES / 4,
        request_rate=(requests / seconds).max(),
        sm_request_rate=(requests_of_an_sm / seconds).max(),
        latency=(seconds[sm] / turns[sm]).min(),
        start_up=seconds[sm].min() / 4,
        index_latency=seconds[sm].min() / 32,
        copy_engine_start_up=on_engine / 4,
    )
    return start.values()


def _solve(work: Floats, seconds: Floats, errors: Floats, start: Floats) -> Floats:
    """Both steps, from `start`."""
    second = np.array([name in SECOND for name in NAMES])
    whole = _whole_lines(work)
    found = _step(work[whole], seconds[whole], errors[whole], start, ~second)
    return _step(work[~whole], seconds[~whole], errors[~whole], found, second)


def _step(
    work: Floats, seconds: Floats, errors: Floats, start: Floats, free: npt.NDArray[np.bool_]
) -> Floats:
    """`start` with its `free` parameters fitted. Cases off by more than their error count less.

    The search is over multiples of `start`.
    """
    values = start.copy()
    weights = 1 / np.hypot(errors, FLOOR)

    def residuals(multiples: Floats) -> Floats:
        values[free] = start[free] * multiples
        return np.asarray(np.log(predicted_seconds(work, values) / seconds) * weights)

    lowest = np.where([name in MAY_BE_NONE for name in NAMES], 0.0, 0.01)[free]
    found = least_squares(
        residuals,
        np.ones(len(lowest)),
        bounds=(lowest, np.inf),
        loss="cauchy",
        f_scale=CAUCHY_SCALE,
    )
    values[free] = start[free] * found.x
    return values
