"""A machine's parameters, fitted to the cases of its calibrations by least squares, and the
predictions that are judged: those that the link or address translation clearly limits.

The first step uses the cases that request only whole lines, where the bytes on the wire are known
exactly: they determine the link's rate, the start-up times, and the limits of an SM and of a warp.
The second fits the cost of smaller requests to the rest of the link's cases. The third fits address
translation, with these parameters given, to the cases that say how large their pool is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.base.processes import forked_map
from analysis.base.statistics import CONFIDENCE
from analysis.results.model import terms
from analysis.results.model.terms import BINDS, NAMES, TERMS, TRANSLATION, Parameters
from analysis.results.model.traffic import FRAMING_BYTES, HEADER_BYTES, LINE_BYTES, SECTOR_BYTES
from analysis.study import Study, Variant, calibrating
from analysis.study.access import Floats

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
WAIT_STARTS: Final = (4, 8, 16, 32)
"""Where searches for `region_wait` start, in walks. If the link hides a wait that is too short in
every case with ascending rows, it affects no residual, and a single search would end there."""
CAUCHY_SCALE: Final = 2.385
"""Residuals up to this scale, in units of their error, count about as in least squares: 95 %
efficiency for normal noise (Holland and Welsch, "Robust regression", 1977)."""

OF_TRANSLATION: Final = np.array([BINDS.get(name) == TRANSLATION for name in NAMES])
"""Mask of the parameters that the third step fits."""
IN_SECOND: Final = np.isin(NAMES, ("half_line", "request_rate"))
"""Mask of those of the second step."""
LOWEST: Final = np.where(
    np.isin(NAMES, ("half_line", "start_up", "index_latency", "copy_engine_start_up")), 0.0, 0.01
)
"""Lowest multiple of its start for each parameter; a rate or the latency of a turn cannot be 0."""

LINK: Final = TERMS[0]
JUDGED_MARGIN: Final = 1.2
"""Minimum ratio of the largest term to the next. Closer to their crossing, waiting for one
delays the other, and the time is longer than either."""
JUDGED_WITHIN: Final = {LINK: 0.03, TRANSLATION: 0.05}
"""The largest residual of a correct prediction, by the term that binds."""
INSIDE: Final = "inside"
"""Held back, and within the range of every key that is fitted."""
OUTSIDE: Final = "outside"
"""Held back, and beyond that range: the prediction extrapolates."""
FITTED: Final = ""
MIN_LINK_CASES: Final = 24
MIN_WALK_CASES: Final = 21
"""Minimum number of fitted cases: three for each parameter of the link, or of translation."""
PREDICTED: Final = "predicted"
OF_CALIBRATION: Final = {FITTED: "fitted", INSIDE: "interpolated", OUTSIDE: "extrapolated"}
"""Use of a calibration's case in the fit."""
USES: Final = (PREDICTED, *OF_CALIBRATION.values())

Mask = npt.NDArray[np.bool_]


def held_back(study: Study, variant: Variant) -> list[str]:
    """How each case of the variant is held back; FITTED where it is not, as outside calibrations.

    OUTSIDE are all cases beyond the study's `fitted_range`. Of the others, in the order of
    study.yaml, one of every three is INSIDE: the third of the first three, then the second of the
    next three, then the first. So a key that alternates within three cases is not held back with
    the same value each time.
    """
    if not study.calibrates:
        return [FITTED] * len(variant.cases)
    uses: list[str] = []
    for case in variant.cases:
        ranges = (item for item in study.fitted_range.items() if item[0] in case.values)
        if not all(low <= case.number(key) <= high for key, (low, high) in ranges):
            uses.append(OUTSIDE)
        else:
            number = len(uses) - uses.count(OUTSIDE)
            uses.append(INSIDE if (number + number // 3) % 3 == 2 else FITTED)
    return uses


def on_copy_engine(cases: pd.DataFrame) -> Mask:
    return (cases["copy engine"] > 0).to_numpy()


def in_whole_lines(cases: pd.DataFrame) -> Mask:
    """Mask of the cases that request only whole lines, including those of the copy engine."""
    line = LINE_BYTES + HEADER_BYTES + FRAMING_BYTES
    return (cases["wire"] > cases["requests"] * (line - 0.5)).to_numpy()


def fit(cases: pd.DataFrame) -> pd.DataFrame | None:
    """Fit the parameters to the calibration of one machine, with intervals by resampling its cases,
    which have the columns of WORK, `measured` in seconds, the relative `error` and `runs`.

    Each row is one of NAMES: its `value`, the ends `ci_low` and `ci_high` of its interval, and the
    numbers of `cases` and `runs` that it is fitted to. The ends are NaN if a parameter is only a
    bound: its term is not the largest of any case by a factor of JUDGED_MARGIN. Parameters of
    translation are NaN if too few cases have a pool, or none a large one.

    None if the link has too few cases, or lacks reads by SMs of whole lines or of parts of lines.
    """
    link, walks = cases[cases["entries"] == 0], cases[cases["entries"] > 0]
    whole = in_whole_lines(link)
    has_both = not whole.all() and (whole & ~on_copy_engine(link)).any()
    if len(link) < MIN_LINK_CASES or not has_both:
        return None
    found = _estimate(link, _fit_link)
    if len(walks) >= MIN_WALK_CASES and (walks["entries"] > FARTHEST_HELD).any():
        of_walks = _estimate(walks, partial(_fit_walks, link=found["value"].to_numpy()))
        found = pd.concat([found[~OF_TRANSLATION], of_walks[OF_TRANSLATION]])
    return found


def _estimate(cases: pd.DataFrame, solve: Callable[..., Floats]) -> pd.DataFrame:
    """The table of `fit`. `solve` gives the parameters [parameters] that fit cases best, with the
    weight of each [cases]; it searches from `first` on, if given.

    The ends are those of repeated fits with weights from an exponential distribution (Rubin, "The
    Bayesian bootstrap", 1981), so that no resample lacks a kind of case.
    """
    rng = np.random.default_rng(0)
    values = solve(cases, np.ones(len(cases)))
    draws = [rng.exponential(size=len(cases)) for _ in range(RESAMPLES)]
    refits = forked_map(partial(solve, cases, first=values), draws, max_processes=MAX_PROCESSES)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(refits, [tail, 1 - tail], axis=0)
    limits = terms.term_seconds(terms.work_in(cases), values)[:, :-1]
    *_, lesser, largest = np.sort(limits, axis=1).T
    is_clear = largest > JUDGED_MARGIN * lesser
    binding = {TERMS[index] for index in limits[is_clear].argmax(axis=1)}
    is_bound = np.array([BINDS.get(name, "") not in {"", *binding} for name in NAMES])
    if not on_copy_engine(cases).any():
        of_copies = NAMES.index("copy_engine_start_up")
        values[of_copies], is_bound[of_copies] = np.nan, True
    low[is_bound] = high[is_bound] = np.nan
    found = {"value": values, "ci_low": low, "ci_high": high}
    return pd.DataFrame(found, index=NAMES).assign(cases=len(cases), runs=cases["runs"].max())


def _fit_link(cases: pd.DataFrame, draws: Floats, first: Floats | None = None) -> Floats:
    """Both steps of the link. Without `first`, the search begins at the highest rates and the
    shortest latency that any case shows: each term is then the largest in some case, so every
    parameter affects the residuals."""
    sm, whole = ~on_copy_engine(cases), in_whole_lines(cases)
    seconds = cases["measured"].to_numpy()
    wire, _, requests, requests_of_an_sm, turns = terms.work_in(cases).T[:5]
    start = Parameters(
        link_rate=(wire / seconds).max(),
        half_line=SECTOR_BYTES / 4,
        request_rate=(requests / seconds).max(),
        sm_request_rate=(requests_of_an_sm / seconds).max(),
        latency=(seconds[sm] / turns[sm]).min(),
        start_up=seconds[sm].min() / 4,
        index_latency=seconds[sm].min() / 32,
        copy_engine_start_up=min(seconds[~sm], default=1e-6) / 4,
    )
    in_first = ~IN_SECOND & ~OF_TRANSLATION
    _, known = _step(cases[whole], draws[whole], start.values(), in_first, first)
    return _step(cases[~whole], draws[~whole], known, IN_SECOND, first)[1]


def _fit_walks(
    cases: pd.DataFrame, draws: Floats, first: Floats | None = None, *, link: Floats
) -> Floats:
    """The third step, with the parameters of the `link` [parameters] given: the best of several
    searches, or the one from `first` on."""
    far = cases[cases["entries"] > FARTHEST_HELD]
    walk = (far["measured"] / far["touches"]).min() / 2
    start = replace(
        Parameters(*link),
        held_entries=HELD_START,
        walk=walk,
        held_regions=REGIONS_START,
        region_walk=walk / 2,
        region_wait=WAIT_STARTS[0] * walk,
        table_miss=walk,
        row_cache=ROW_CACHE_START,
    )
    waits = WAIT_STARTS if first is None else WAIT_STARTS[:1]
    starts = [replace(start, region_wait=wait * walk).values() for wait in waits]
    searches = [_step(cases, draws, each, OF_TRANSLATION, first) for each in starts]
    return min(searches, key=lambda search: search[0])[1]


def _step(
    cases: pd.DataFrame, draws: Floats, start: Floats, free: Mask, first: Floats | None
) -> tuple[float, Floats]:
    """The loss of the best fit, and `start` with its `free` parameters fitted, as multiples of
    their start. The search begins at `first`, else at the start."""
    from scipy.optimize import least_squares  # slow to import, and reading a fit needs none

    inputs, seconds = terms.work_in(cases), cases["measured"].to_numpy()
    weights = 1 / np.hypot(cases["error"].to_numpy(), FLOOR)

    def values(multiples: Floats) -> Floats:
        found = np.broadcast_to(start, (*multiples.shape[:-1], len(start))).copy()
        found[..., free] = start[free] * multiples
        return found

    def residuals(multiples: Floats) -> Floats:
        predicted = terms.predicted_seconds(inputs, values(multiples))
        return np.asarray(np.log(predicted / seconds) * weights)

    def at_once(_: object, points: Iterable[Floats]) -> Floats:
        return residuals(np.array(list(points)))

    def loss(squares: Floats) -> Floats:
        """Cauchy's loss of each squared residual and its first two derivatives, times its draws."""
        rest = 1 / (1 + squares)
        return np.asarray(draws * np.stack([np.log1p(squares), rest, -(rest**2)]))

    found = least_squares(
        residuals,
        np.maximum((start if first is None else first)[free] / start[free], LOWEST[free]),
        bounds=(LOWEST[free], np.inf),
        loss=loss,
        f_scale=CAUCHY_SCALE,
        workers=at_once,
    )
    return found.cost, values(found.x)


def judged(model: pd.DataFrame) -> pd.Series[bool]:
    """Mask of the judged rows of the model's table."""
    return model["binding"].isin(JUDGED_WITHIN) & (model["margin"] >= JUDGED_MARGIN)


def uses(model: pd.DataFrame, studies: Mapping[str, Study]) -> list[str]:
    """The use of each row, one of USES."""
    fitted = calibrating(studies)
    return [
        OF_CALIBRATION[held] if study in fitted else PREDICTED
        for study, held in zip(model["study"], model["held_back"], strict=True)
    ]
