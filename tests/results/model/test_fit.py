"""Fits: parameters recovered from noisy times, outliers, and parameters without data."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from analysis.base.statistics import CONFIDENCE
from analysis.results.model.fit import MIN_CASES, Calibration, Fit, _resampled, fit
from analysis.results.model.terms import (
    TERMS,
    WORK,
    Parameters,
    predicted_seconds,
    term_seconds,
    work_of,
)
from analysis.study.access import access_of
from tests.linked import CALIBRATION, SMS, TRUE

COPY_ENGINE = WORK.index("copy engine")


def calibration(seed: int = 3, parameters: Parameters = TRUE) -> Calibration:
    """A run of all calibration cases, with 1 % of noise in their times."""
    cells = [(variant, case) for variant in CALIBRATION.variants for case in variant.cases]
    accesses = [access_of(*cell) for cell in cells]
    work = np.array([work_of(access, SMS) for access in accesses if access])
    errors = np.full(len(work), 0.01)
    noise = np.exp(np.random.default_rng(seed).normal(0, errors))
    return Calibration(work, predicted_seconds(work, parameters.values()) * noise, errors)


@cache
def of_one_run() -> Fit:
    """A fit to one run, with intervals, which take hundreds of fits."""
    found = fit([calibration()])
    assert isinstance(found, Fit)
    return found


def test_parameters_are_recovered_from_noisy_times() -> None:
    found = of_one_run()
    for name in ("link_rate", "request_rate", "sm_request_rate", "latency"):
        true, value = getattr(TRUE, name), getattr(found.parameters, name)
        assert value == pytest.approx(true, rel=0.02), name
        assert getattr(found.low, name) <= value <= getattr(found.high, name)
    assert found.parameters.half_line == pytest.approx(TRUE.half_line, abs=2)
    assert found.parameters.start_up == pytest.approx(TRUE.start_up, abs=3e-6)
    assert found.parameters.index_latency == pytest.approx(TRUE.index_latency, abs=0.2e-6)


def test_from_three_runs_on_intervals_are_for_another_run() -> None:
    rates = [56e9, 59e9, 65e9]
    runs = [
        calibration(seed, replace(TRUE, link_rate=rate)) for seed, rate in enumerate(rates, start=1)
    ]
    found = fit(runs)
    assert found is not None and set(found.runs) == {3}
    assert found.parameters.link_rate == pytest.approx(59e9, rel=0.01)
    assert found.low.link_rate < min(rates) and max(rates) < found.high.link_rate
    newest = fit(runs[1:])
    assert newest is not None and set(newest.runs) == {1}
    assert newest.parameters.link_rate == pytest.approx(65e9, rel=0.01)
    assert newest.low.link_rate > 60e9


def test_parameter_missing_from_one_run_is_only_a_bound() -> None:
    whole = calibration()
    terms = term_seconds(whole.work, TRUE.values())[:, :-1]
    in_flight = terms.argmax(axis=1) == TERMS.index("in flight")
    part = Calibration(*(values[~in_flight] for values in whole))
    known, bound = fit([whole] * 3), fit([whole, whole, part])
    assert known is not None and bound is not None
    assert math.isfinite(known.low.latency) and math.isnan(bound.low.latency)
    assert math.isfinite(bound.low.link_rate)


def test_interval_of_one_run_covers_repeated_fits() -> None:
    run, drawn = calibration(), []

    def solve(again: Calibration) -> npt.NDArray[np.float64]:
        drawn.append(again.seconds)
        return again.seconds

    low, high = _resampled(run, TRUE.values(), solve)
    inside = (low <= drawn) & (drawn <= high)
    assert inside.mean(axis=0) == pytest.approx(CONFIDENCE, abs=0.03)


def test_a_run_that_lacks_cases_is_left_out() -> None:
    whole = calibration()
    part = Calibration(*(values[:5] for values in whole))
    assert fit([part]) is None
    found, alone = (fit(runs, with_intervals=False) for runs in ([whole, part], [whole]))
    assert str(found) == str(alone)  # NaN equals nothing


def test_a_fit_without_intervals_has_the_same_parameters() -> None:
    bare = fit([calibration()], with_intervals=False)
    assert bare is not None
    assert str(bare.parameters) == str(of_one_run().parameters)
    assert math.isnan(bare.low.link_rate) and math.isnan(bare.high.link_rate)


def test_slow_outliers_do_not_move_the_fit() -> None:
    run = calibration()
    run.seconds[::15] *= 1.4
    found = fit([run], with_intervals=False)
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)


def test_a_case_counts_less_the_less_sure_it_is() -> None:
    run = calibration()
    contiguous = (run.work[:, COPY_ENGINE] == 0).nonzero()[0][-1]
    run.seconds[contiguous] *= 1.2
    run.errors[contiguous] = 0.5
    found = fit([run], with_intervals=False)
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)


def test_parameter_without_data_is_unknown_or_a_bound() -> None:
    run = calibration()

    def fit_part(cases: npt.NDArray[np.bool_]) -> Fit | None:
        return fit([Calibration(*(values[cases] for values in run))])

    terms = term_seconds(run.work, TRUE.values())[:, :-1]
    found = fit_part((terms.argmax(axis=1) == 0) & (run.work[:, COPY_ENGINE] == 0))
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)
    assert math.isnan(found.parameters.copy_engine_start_up)
    assert found.parameters.latency >= TRUE.latency * 0.9
    assert math.isnan(found.low.latency)
    whole = run.work[:, WORK.index("wire")] == 148 * run.work[:, WORK.index("requests")]
    assert whole.sum() > MIN_CASES and (~whole).sum() > MIN_CASES
    assert fit_part(whole) is None
    assert fit_part(~whole) is None
