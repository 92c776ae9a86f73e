"""Fits: parameters recovered from noisy times, outliers, and parameters without data."""

from __future__ import annotations

import math
from functools import cache
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

from analysis.results.model.fit import Calibration, Fit, fit
from analysis.results.model.terms import (
    TERMS,
    WORK,
    Parameters,
    predicted_seconds,
    term_seconds,
    work_of,
)
from analysis.study.access import access_of
from analysis.study.calibration import OF_LINK
from tests.linked import CALIBRATION, SMS, TRUE


def fitted(cases: Calibration, resamples: int = 3) -> Fit:
    """The fit. Intervals take most of its time."""
    with patch("analysis.results.model.fit.RESAMPLES", resamples):
        found = fit(cases)
    assert isinstance(found, Fit)
    return found


def calibration(seed: int = 3, parameters: Parameters = TRUE) -> Calibration:
    """All calibration cases of one run, with 1 % of noise in their times."""
    cells = [(variant, case) for variant in CALIBRATION.variants for case in variant.cases]
    accesses = [access_of(*cell) for cell in cells]
    work = np.array([work_of(access, SMS) for access in accesses if access])
    errors = np.full(len(work), 0.01)
    noise = np.exp(np.random.default_rng(seed).normal(0, errors))
    seconds = predicted_seconds(work, parameters.values()) * noise
    return Calibration(work, seconds, errors, np.ones(len(work)))


@cache
def of_noisy_times() -> Fit:
    """A fit with intervals, which take hundreds of fits."""
    return fitted(calibration(), resamples=100)


def test_parameters_are_recovered_from_noisy_times() -> None:
    found = of_noisy_times()
    for name in ("link_rate", "request_rate", "sm_request_rate", "latency"):
        true, value = getattr(TRUE, name), getattr(found.parameters, name)
        assert value == pytest.approx(true, rel=0.02), name
        assert getattr(found.low, name) <= value <= getattr(found.high, name)
    assert found.parameters.half_line == pytest.approx(TRUE.half_line, abs=2)
    assert found.parameters.start_up == pytest.approx(TRUE.start_up, abs=3e-6)
    assert found.parameters.index_latency == pytest.approx(TRUE.index_latency, abs=0.2e-6)
    assert set(found.cases) == {len(calibration().seconds)} and set(found.runs) == {1}


def test_an_interval_is_as_wide_as_other_draws_of_the_noise_differ() -> None:
    found = of_noisy_times()
    rates = [fitted(calibration(seed)).parameters.link_rate for seed in range(10, 30)]
    expected = 2 * 1.96 * np.std(rates, ddof=1)
    assert found.high.link_rate - found.low.link_rate == pytest.approx(expected, rel=0.5)


def test_outliers_and_unsure_cases_do_not_move_the_fit() -> None:
    cases = calibration()
    cases.seconds[::15] *= 1.4
    assert fitted(cases).parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)
    unsure = calibration()
    unsure.seconds[::2] *= 1.03  # by so little that they are no outliers
    unsure.errors[::2] = 0.5
    assert fitted(unsure).parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.006)


def test_parameter_without_data_is_unknown_or_a_bound() -> None:
    cases = calibration()
    work, terms = cases.work, term_seconds(cases.work, TRUE.values())[:, :-1]

    def of(part: npt.NDArray[np.bool_]) -> Fit:
        return fitted(cases.only(part))

    found = of((terms.argmax(axis=1) == 0) & (work[:, WORK.index("copy engine")] == 0))
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)
    assert math.isnan(found.parameters.copy_engine_start_up)
    assert found.parameters.latency >= TRUE.latency * 0.9
    assert math.isnan(found.low.latency)
    without_latency = of(terms.argmax(axis=1) != TERMS.index("in flight"))
    assert math.isnan(without_latency.low.latency) and math.isfinite(without_latency.low.link_rate)
    whole = work[:, WORK.index("wire")] == 148 * work[:, WORK.index("requests")]
    assert min(whole.sum(), (~whole).sum()) > OF_LINK.min_cases
    few = np.arange(len(work)) < OF_LINK.min_cases - 1
    assert [fit(cases.only(part)) for part in (whole, ~whole, few)] == [None] * 3
