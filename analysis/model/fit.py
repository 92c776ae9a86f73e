"""A machine's parameters from its calibration: least squares, intervals by resampling residuals.

The fit has two steps. The first uses the cases that request only whole lines, where the bytes on
the wire are known exactly. They determine the link's rate, the start-up times, and the limits of a
multiprocessor and of a warp. The second step fits the cost of smaller requests to the rest.
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
"""Relative error assumed for a case that repeats exactly: no model is more accurate than that."""
CAUCHY_SCALE: Final = 2.385
"""Residuals up to this scale, in units of their error, count about as in least squares. The value
gives 95 % efficiency for normal noise (Holland and Welsch, "Robust regression using iteratively
reweighted least-squares", 1977)."""
FEWEST_CASES: Final = 24
"""Three cases per parameter."""

NAMES: Final = tuple(field.name for field in fields(Parameters))
SECOND: Final = ("half_line", "request_rate")
"""Parameters fitted in the second step."""
MAY_BE_NONE: Final = ("half_line", "start_up", "index_latency", "copy_engine_start_up")
"""Parameters that can be 0; a rate or the latency of a turn cannot."""


@dataclass(frozen=True)
class Fit:
    """Parameters and the ends of their intervals; the ends are NaN if a parameter is only a bound.

    It is only a bound if in no fitted case its term is the largest by a factor of JUDGED_MARGIN.
    """

    parameters: Parameters
    low: Parameters
    high: Parameters


def held_back(cases: int) -> npt.NDArray[np.bool_]:
    """Which of a sequence of `cases` cases are held back from the fit: one of every three.

    The third of the first three, then the second of the next three, then the first, so that a key
    that alternates within three cases is not held back with the same value each time.
    """
    index = np.arange(cases)
    chosen: npt.NDArray[np.bool_] = (index + index // 3) % 3 == 2
    return chosen


def fit(work: Floats, seconds: Floats, errors: Floats) -> Fit | None:
    """Fit the parameters to `seconds` [cases] of `work` [cases, 7]; None for too few cases.

    `errors` [cases] are relative errors: the larger the error, the less a case counts. Also None if
    the cases lack reads by SMs of whole lines, or of parts of lines.
    """
    copy_engine = work[:, WORK.index("copy engine")] > 0
    whole = _whole_lines(work)
    if len(seconds) < FEWEST_CASES or whole.all() or not (whole & ~copy_engine).any():
        return None
    start = _start(work, seconds)
    best = _solve(work, seconds, errors, start)
    error_scale = np.hypot(errors, FLOOR)
    fitted = predicted_seconds(work, best)
    residuals = np.log(seconds / fitted) / error_scale
    rng = np.random.default_rng(0)
    resampled = np.array(
        [
            _solve(
                work,
                fitted * np.exp(error_scale * rng.choice(residuals, len(residuals))),
                errors,
                start,
            )
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
    """Which cases request only whole lines; those of the copy engine are included."""
    line = LINE_BYTES + HEADER_BYTES + FRAMING_BYTES
    wire, requests = work[:, WORK.index("wire")], work[:, WORK.index("requests")]
    whole: npt.NDArray[np.bool_] = wire > requests * (line - 0.5)
    return whole


def _start(work: Floats, seconds: Floats) -> Floats:
    """The starting point: the highest rates and the shortest latency that any case shows.

    Each term is then the largest in some case, so every parameter affects the residuals.
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
    """Fit both steps, from `start`."""
    second = np.array([name in SECOND for name in NAMES])
    whole = _whole_lines(work)
    found = _step(work[whole], seconds[whole], errors[whole], start, ~second)
    return _step(work[~whole], seconds[~whole], errors[~whole], found, second)


def _step(
    work: Floats, seconds: Floats, errors: Floats, start: Floats, free: npt.NDArray[np.bool_]
) -> Floats:
    """`start` with its `free` parameters fitted. Cases with residuals above their error count less.

    The search variables are multiples of `start`.
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
