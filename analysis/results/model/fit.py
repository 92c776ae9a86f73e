"""A machine's parameters, fitted to the cases of its calibrations by least squares.

The fit has three steps. The first uses the cases that request only whole lines, where the bytes on
the wire are known exactly. They determine the link's rate, the start-up times, and the limits of a
multiprocessor and of a warp. The second fits the cost of smaller requests to the rest of the link's
cases. With these parameters given, the third fits those of address translation to the cases that
say how large their pool is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.base.forked import forked_map
from analysis.base.statistics import CONFIDENCE
from analysis.results.model.judge import JUDGED_MARGIN
from analysis.results.model.terms import (
    BINDS,
    TERMS,
    TRANSLATION,
    WORK,
    Parameters,
    predicted_seconds,
    term_seconds,
)
from analysis.results.model.traffic import FRAMING_BYTES, HEADER_BYTES, LINE_BYTES, SECTOR_BYTES
from analysis.results.model.translation import UNCALIBRATED
from analysis.study.access import Floats
from analysis.study.calibration import OF_LINK, OF_WALKS

RESAMPLES: Final = 200
MAX_PROCESSES: Final = 4
"""Maximum number of processes of one fit; fits of several machines run at once."""
FLOOR: Final = 0.005
"""Relative error assumed for a case that repeats exactly: no model is more accurate than that."""
HELD_START: Final = 8192
FARTHEST_HELD: Final = 4 * HELD_START
"""Entries of a pool in which nearly every touch is a walk."""
REGIONS_START: Final = 256
ROW_CACHE_START: Final = 32 * 2**20
"""Where the search for these three parameters starts."""
CAUCHY_SCALE: Final = 2.385
"""Residuals up to this scale, in units of their error, count about as in least squares. The value
gives 95 % efficiency for normal noise (Holland and Welsch, "Robust regression using iteratively
reweighted least-squares", 1977)."""

NAMES: Final = tuple(field.name for field in fields(Parameters))
OF_TRANSLATION: Final = np.array([BINDS.get(name) == TRANSLATION for name in NAMES])
"""Mask of the parameters that the third step fits."""
SECOND: Final = ("half_line", "request_rate")
"""Parameters fitted in the second step."""
MAY_BE_NONE: Final = ("half_line", "start_up", "index_latency", "copy_engine_start_up")
"""Parameters that can be 0; a rate or the latency of a turn cannot."""


class Calibration(NamedTuple):
    """The cases that are fitted: `work` [cases, 12], `seconds` [cases], relative `errors` [cases],
    and the number of `runs` [cases]. The larger its error, the less a case counts."""

    work: Floats
    seconds: Floats
    errors: Floats
    runs: Floats

    def only(self, cases: npt.NDArray[np.bool_]) -> Calibration:
        """The cases of this mask [cases]."""
        return Calibration(*(values[cases] for values in self))


@dataclass(frozen=True)
class Fit:
    """Parameters, the ends of their intervals, and the numbers of cases and runs that each of them
    is fitted to: `cases` and `runs` [parameters]. The ends are NaN if a parameter is only a bound.

    It is only a bound if its term is not the largest of any case by a factor of JUDGED_MARGIN.
    """

    parameters: Parameters
    low: Parameters
    high: Parameters
    cases: tuple[int, ...]
    runs: tuple[int, ...]


def fit(calibration: Calibration) -> Fit | None:
    """Fit the parameters to the cases of one machine, with intervals by resampling its cases.

    None if the link has too few cases, or lacks reads by SMs of whole lines or of parts of lines.
    Parameters of translation are NaN if too few cases have a pool, or none a large one.
    """
    entries = calibration.work[:, WORK.index("entries")]
    link, walks = calibration.only(entries == 0), calibration.only(entries > 0)
    whole = _whole_lines(link.work)
    has_both = not whole.all() and (whole & ~_on_copy_engine(link)).any()
    if len(link.seconds) < OF_LINK.min_cases or not has_both:
        return None
    estimate = of_link = _estimate(link, _link)
    if len(walks.seconds) >= OF_WALKS.min_cases and (entries > FARTHEST_HELD).any():
        of_walks = _estimate(walks, partial(_walks, of_link[0]))
        estimate = [np.where(OF_TRANSLATION, *ends) for ends in zip(of_walks, of_link, strict=True)]
    values, low, high = (Parameters(*map(float, ends)) for ends in estimate[:3])
    cases, runs = (tuple(map(int, counts)) for counts in estimate[3:])
    return Fit(values, low, high, cases, runs)


Solve = Callable[[Calibration, Floats], Floats]
"""The parameters [parameters] that fit cases best, each of which counts so often [cases]."""


def _estimate(calibration: Calibration, solve: Solve) -> list[Floats]:
    """Values, lower and upper ends, and numbers of cases and runs, each [parameters].

    The ends are those of repeated fits to resampled cases. How often a case counts is drawn from an
    exponential distribution (Rubin, "The Bayesian bootstrap", 1981), so that no resample lacks a
    kind of case, and with it a parameter.
    """
    rng = np.random.default_rng(0)
    cases = len(calibration.seconds)
    values = solve(calibration, np.ones(cases))
    draws = [rng.exponential(size=cases) for _ in range(RESAMPLES)]
    refits = forked_map(lambda drawn: solve(calibration, drawn), draws, max_processes=MAX_PROCESSES)
    tail = (1 - CONFIDENCE) / 2
    ends = np.quantile(refits, [tail, 1 - tail], axis=0)
    low, high = np.where(_binding(calibration, values), ends, np.nan)
    if not _on_copy_engine(calibration).any():
        values[NAMES.index("copy_engine_start_up")] = np.nan
    counts = (np.full(len(NAMES), float(n)) for n in (cases, calibration.runs.max()))
    return [values, low, high, *counts]


def _binding(calibration: Calibration, values: Floats) -> npt.NDArray[np.bool_]:
    """Mask of the parameters that the cases determine; the others are only bounds."""
    terms = term_seconds(calibration.work, values)[:, :-1]
    lesser = np.sort(terms, axis=1)[:, -2]
    binding = {
        TERMS[index] for index in terms[terms.max(axis=1) > JUDGED_MARGIN * lesser].argmax(1)
    }
    shown = {name for name in NAMES if name not in BINDS or BINDS[name] in binding}
    if not _on_copy_engine(calibration).any():
        shown.remove("copy_engine_start_up")
    return np.array([name in shown for name in NAMES])


def _on_copy_engine(cases: Calibration) -> npt.NDArray[np.bool_]:
    on_engine: npt.NDArray[np.bool_] = cases.work[:, WORK.index("copy engine")] > 0
    return on_engine


def _whole_lines(work: Floats) -> npt.NDArray[np.bool_]:
    """Mask of the cases that request only whole lines, including those of the copy engine."""
    line = LINE_BYTES + HEADER_BYTES + FRAMING_BYTES
    wire, requests = work[:, WORK.index("wire")], work[:, WORK.index("requests")]
    whole: npt.NDArray[np.bool_] = wire > requests * (line - 0.5)
    return whole


def _start(cases: Calibration) -> Floats:
    """The starting point: the highest rates and the shortest latency that any case shows.

    Each term is then the largest in some case, so every parameter affects the residuals.
    """
    seconds = cases.seconds
    wire, _, requests, requests_of_an_sm, turns = cases.work.T[:5]
    sm = ~_on_copy_engine(cases)
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
        **asdict(UNCALIBRATED),
    )
    return start.values()


def _link(cases: Calibration, draws: Floats) -> Floats:
    """Both steps of the link."""
    second = np.array([name in SECOND for name in NAMES])
    whole = _whole_lines(cases.work)
    known = _step(cases.only(whole), draws[whole], _start(cases), ~second & ~OF_TRANSLATION)
    return _step(cases.only(~whole), draws[~whole], known, second)


def _walks(link: Floats, cases: Calibration, draws: Floats) -> Floats:
    """The third step, with the parameters of the `link` [parameters] given."""
    entries, touches = (cases.work[:, WORK.index(name)] for name in ("entries", "touches"))
    walk = (cases.seconds / touches)[entries > FARTHEST_HELD].min() / 2
    start = replace(
        Parameters(*link),
        held_entries=HELD_START,
        walk=walk,
        held_regions=REGIONS_START,
        region_walk=walk / 2,
        region_wait=4 * walk,
        table_miss=walk,
        row_cache=ROW_CACHE_START,
    )
    return _step(cases, draws, start.values(), OF_TRANSLATION)


def _step(cases: Calibration, draws: Floats, start: Floats, free: npt.NDArray[np.bool_]) -> Floats:
    """`start` with its `free` parameters fitted. Cases with residuals above their error count less.

    The search variables are multiples of `start`.
    """
    # here, as it is slow to import, and what reads a fit needs none
    from scipy.optimize import least_squares

    weights = 1 / np.hypot(cases.errors, FLOOR)

    def values(multiples: Floats) -> Floats:
        found = np.broadcast_to(start, (*multiples.shape[:-1], len(start))).copy()
        found[..., free] = start[free] * multiples
        return found

    def residuals(multiples: Floats) -> Floats:
        predicted = predicted_seconds(cases.work, values(multiples))
        return np.asarray(np.log(predicted / cases.seconds) * weights)

    def at_once(_: object, points: Iterable[Floats]) -> Floats:
        return residuals(np.array(list(points)))

    lowest = np.where([name in MAY_BE_NONE for name in NAMES], 0.0, 0.01)[free]

    def loss(squares: Floats) -> Floats:
        """Cauchy's loss of each squared residual and its first two derivatives, times its draws."""
        rest = 1 / (1 + squares)
        return np.asarray(draws * np.stack([np.log1p(squares), rest, -(rest**2)]))

    found = least_squares(
        residuals,
        np.ones(len(lowest)),
        bounds=(lowest, np.inf),
        loss=loss,
        f_scale=CAUCHY_SCALE,
        workers=at_once,
    )
    return values(found.x)
