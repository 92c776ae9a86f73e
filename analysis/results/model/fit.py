"""A machine's parameters from the runs of its calibrations: each is a least-squares fit.

The fit of the link has two steps. The first uses the cases that request only whole lines, where the
bytes on the wire are known exactly. They determine the link's rate, the start-up times, and the
limits of a multiprocessor and of a warp. The second step fits the cost of smaller requests to the
rest. With these parameters given, the cases that say how large their pool is determine those of
address translation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.base.forked import forked_map
from analysis.base.statistics import CONFIDENCE, MIN_RUNS, prediction_interval
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

RESAMPLES: Final = 200
MAX_PROCESSES: Final = 4
"""Maximum number of processes of one fit; fits of several machines run at once."""
FLOOR: Final = 0.005
"""Relative error assumed for a case that repeats exactly: no model is more accurate than that."""
HELD_START: Final = 8192
REGIONS_START: Final = 256
ROW_CACHE_START: Final = 32 * 2**20
"""Where the search for these three parameters starts."""
CAUCHY_SCALE: Final = 2.385
"""Residuals up to this scale, in units of their error, count about as in least squares. The value
gives 95 % efficiency for normal noise (Holland and Welsch, "Robust regression using iteratively
reweighted least-squares", 1977)."""
MIN_CASES: Final = 24
"""Three cases per parameter."""

NAMES: Final = tuple(field.name for field in fields(Parameters))
OF_TRANSLATION: Final = np.array([BINDS.get(name) == TRANSLATION for name in NAMES])
"""Mask of the parameters that the third step fits."""
SECOND: Final = ("half_line", "request_rate")
"""Parameters fitted in the second step."""
MAY_BE_NONE: Final = ("half_line", "start_up", "index_latency", "copy_engine_start_up")
"""Parameters that can be 0; a rate or the latency of a turn cannot."""


class Calibration(NamedTuple):
    """The cases of one run that are fitted: `work` [cases, 12], their `seconds` [cases], and
    relative `errors` [cases]; the larger its error, the less a case counts."""

    work: Floats
    seconds: Floats
    errors: Floats


@dataclass(frozen=True)
class Fit:
    """Parameters, the ends of their intervals, and from how many runs each of them is: `runs`
    [parameters]. The ends are NaN if a parameter is only a bound.

    It is only a bound if in some run its term is not the largest of any case by a factor of
    JUDGED_MARGIN.
    """

    parameters: Parameters
    low: Parameters
    high: Parameters
    runs: tuple[int, ...]


def fit(runs: Sequence[Calibration], *, with_intervals: bool = True) -> Fit | None:
    """Fit the parameters to each of `runs`, oldest first, by itself; None if no run allows it.

    With MIN_RUNS or more, a parameter is the median over runs, with a prediction interval for
    another run. With fewer, it is that of the newest run, with the interval of its residuals, which
    takes RESAMPLES more fits. The ends are NaN if no intervals are asked for.

    A run is left out if it has too few cases, or lacks reads by SMs of whole lines or of parts of
    lines. Runs with pools are those of translation, whose parameters are NaN without one.
    """
    links = [run for run in runs if not _has_pools(run) and _suffices(run)]
    link = _over_runs(links, _link, with_intervals)
    if link is None:
        return None
    pools = [run for run in runs if _has_pools(run) and len(run.seconds) >= MIN_CASES]
    walks = _over_runs(pools, _Translation(link.values), with_intervals) or link
    estimates = [
        np.where(OF_TRANSLATION, of_walks, of_link)
        for of_walks, of_link in zip(walks, link, strict=True)
    ]
    values, low, high, number = estimates
    counted = tuple(int(count) for count in number)
    return Fit(Parameters(*values), Parameters(*low), Parameters(*high), counted)


class _Estimate(NamedTuple):
    """Arrays [parameters]."""

    values: Floats
    low: Floats
    high: Floats
    runs: Floats


Solve = Callable[[Calibration], Floats]
"""The parameters [parameters] of one run."""


def _over_runs(runs: list[Calibration], solve: Solve, with_intervals: bool) -> _Estimate | None:
    if not runs:
        return None
    if len(runs) < MIN_RUNS:
        runs = runs[-1:]
    found = np.array([solve(run) for run in runs])
    ends: Floats = np.full((2, len(NAMES)), np.nan)
    if with_intervals and len(runs) >= MIN_RUNS:
        ends = np.array([prediction_interval(values[:, None]) for values in found.T]).T
    elif with_intervals:
        ends = _resampled(runs[0], found[0], solve)
    is_shown = np.all(
        [_shown(run, parameters) for run, parameters in zip(runs, found, strict=True)], axis=0
    )
    middle = np.median(found, axis=0)
    if not all(_on_copy_engine(run).any() for run in runs):
        middle[NAMES.index("copy_engine_start_up")] = np.nan
    low, high = np.where(is_shown, ends, np.nan)
    return _Estimate(middle, low, high, np.full(len(NAMES), len(runs)))


def _has_pools(run: Calibration) -> bool:
    return bool((run.work[:, WORK.index("entries")] > 0).any())


def _suffices(run: Calibration) -> bool:
    whole = _whole_lines(run.work)
    has_both = not whole.all() and (whole & ~_on_copy_engine(run)).any()
    return len(run.seconds) >= MIN_CASES and bool(has_both)


def _resampled(run: Calibration, found: Floats, solve: Solve) -> Floats:
    """The ends [2, parameters] of the intervals around what was `found` from one run: those of
    repeated fits in which the residuals are reassigned among the cases."""
    error_scale = np.hypot(run.errors, FLOOR)
    fitted = predicted_seconds(run.work, found)
    residuals = np.log(run.seconds / fitted) / error_scale
    rng = np.random.default_rng(0)
    resampled = [rng.choice(residuals, len(residuals)) for _ in range(RESAMPLES)]
    refits = forked_map(
        lambda errors: solve(run._replace(seconds=fitted * np.exp(error_scale * errors))),
        resampled,
        max_processes=MAX_PROCESSES,
    )
    tail = (1 - CONFIDENCE) / 2
    ends: Floats = np.quantile(refits, [tail, 1 - tail], axis=0)
    return ends


def _shown(run: Calibration, found: Floats) -> npt.NDArray[np.bool_]:
    """Mask of the parameters `found` that the cases determine; the others are only bounds."""
    terms = term_seconds(run.work, found)[:, :-1]
    lesser = np.sort(terms, axis=1)[:, -2]
    binding = {
        TERMS[index] for index in terms[terms.max(axis=1) > JUDGED_MARGIN * lesser].argmax(1)
    }
    shown = {name for name in NAMES if name not in BINDS or BINDS[name] in binding}
    if not _on_copy_engine(run).any():
        shown.remove("copy_engine_start_up")
    return np.array([name in shown for name in NAMES])


def _on_copy_engine(run: Calibration) -> npt.NDArray[np.bool_]:
    on_engine: npt.NDArray[np.bool_] = run.work[:, WORK.index("copy engine")] > 0
    return on_engine


def _whole_lines(work: Floats) -> npt.NDArray[np.bool_]:
    """Mask of the cases that request only whole lines, including those of the copy engine."""
    line = LINE_BYTES + HEADER_BYTES + FRAMING_BYTES
    wire, requests = work[:, WORK.index("wire")], work[:, WORK.index("requests")]
    whole: npt.NDArray[np.bool_] = wire > requests * (line - 0.5)
    return whole


def _start(run: Calibration) -> Floats:
    """The starting point: the highest rates and the shortest latency that any case shows.

    Each term is then the largest in some case, so every parameter affects the residuals.
    """
    seconds = run.seconds
    wire, _, requests, requests_of_an_sm, turns = run.work.T[:5]
    sm = ~_on_copy_engine(run)
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


def _link(run: Calibration) -> Floats:
    """Fit both steps of the link to one run."""
    second = np.array([name in SECOND for name in NAMES])
    whole = _whole_lines(run.work)
    found = _step(_part(run, whole), _start(run), ~second & ~OF_TRANSLATION)
    return _step(_part(run, ~whole), found, second)


@dataclass(frozen=True)
class _Translation:
    """Fits the third step to one run, with `link` [parameters] given."""

    link: Floats

    def __call__(self, run: Calibration) -> Floats:
        known = Parameters(*self.link)
        entries, touches = (run.work[:, WORK.index(name)] for name in ("entries", "touches"))
        walk = (run.seconds / touches)[entries > 4 * HELD_START].min() / 2
        start = replace(
            known,
            held_entries=HELD_START,
            walk=walk,
            held_regions=REGIONS_START,
            region_walk=walk / 2,
            region_wait=4 * walk,
            table_miss=walk,
            row_cache=ROW_CACHE_START,
        )
        return _step(run, start.values(), OF_TRANSLATION)


def _part(run: Calibration, cases: npt.NDArray[np.bool_]) -> Calibration:
    return Calibration(*(values[cases] for values in run))


def _step(run: Calibration, start: Floats, free: npt.NDArray[np.bool_]) -> Floats:
    """`start` with its `free` parameters fitted. Cases with residuals above their error count less.

    The search variables are multiples of `start`.
    """
    # here, as it is slow to import, and what reads a fit needs none
    from scipy.optimize import least_squares

    weights = 1 / np.hypot(run.errors, FLOOR)

    def values(multiples: Floats) -> Floats:
        found = np.broadcast_to(start, (*multiples.shape[:-1], len(start))).copy()
        found[..., free] = start[free] * multiples
        return found

    def residuals(multiples: Floats) -> Floats:
        predicted = predicted_seconds(run.work, values(multiples))
        return np.asarray(np.log(predicted / run.seconds) * weights)

    def at_once(_: object, points: Iterable[Floats]) -> Floats:
        return residuals(np.array(list(points)))

    lowest = np.where([name in MAY_BE_NONE for name in NAMES], 0.0, 0.01)[free]
    found = least_squares(
        residuals,
        np.ones(len(lowest)),
        bounds=(lowest, np.inf),
        loss="cauchy",
        f_scale=CAUCHY_SCALE,
        workers=at_once,
    )
    return values(found.x)
