"""Fits: parameters recovered from noisy times, outliers, and parameters without data."""

from __future__ import annotations

import math
from collections.abc import Iterator
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

COPY_ENGINE = WORK.index("copy engine")


@pytest.fixture(autouse=True)
def few_resamples() -> Iterator[None]:
    """Intervals take most of the time of a fit."""
    with patch("analysis.results.model.fit.RESAMPLES", 3):
        yield


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
    with patch("analysis.results.model.fit.RESAMPLES", 100):
        found = fit(calibration())
    assert isinstance(found, Fit)
    return found


def test_parameters_are_recovered_from_noisy_times() -> None:
    found = of_noisy_times()
    for name in ("link_rate", "request_rate", "sm_request_rate", "latency"):
        true, value = getattr(TRUE, name), getattr(found.parameters, name)
        assert value == pytest.approx(true, rel=0.02), name
        assert getattr(found.low, name) <= value <= getattr(found.high, name)
    assert found.parameters.half_line == pytest.approx(TRUE.half_line, abs=2)
    assert found.parameters.start_up == pytest.approx(TRUE.start_up, abs=3e-6)
    assert found.parameters.index_latency == pytest.approx(TRUE.index_latency, abs=0.2e-6)


def test_an_interval_is_as_wide_as_other_draws_of_the_noise_differ() -> None:
    found = of_noisy_times()
    others = [fit(calibration(seed)) for seed in range(10, 30)]
    rates = [one.parameters.link_rate for one in others if one is not None]
    expected = 2 * 1.96 * np.std(rates, ddof=1)
    assert found.high.link_rate - found.low.link_rate == pytest.approx(expected, rel=0.5)


def test_a_fit_has_the_number_of_its_cases_and_runs() -> None:
    cases = calibration()
    cases.runs[::2] = 5
    found = fit(cases)
    assert found is not None
    assert set(found.cases) == {len(cases.seconds)} and set(found.runs) == {5}


def test_a_calibration_that_lacks_cases_has_no_fit() -> None:
    whole = calibration()
    few = np.arange(len(whole.seconds)) < OF_LINK.min_cases - 1
    assert fit(whole.only(few)) is None


def test_slow_outliers_do_not_move_the_fit() -> None:
    cases = calibration()
    cases.seconds[::15] *= 1.4
    found = fit(cases)
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)


def test_a_case_counts_less_the_less_sure_it_is() -> None:
    """Slow by so little that it is no outlier."""
    cases = calibration()
    cases.seconds[::2] *= 1.03
    cases.errors[::2] = 0.5
    found = fit(cases)
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.006)


def test_parameter_without_data_is_unknown_or_a_bound() -> None:
    cases = calibration()

    def fit_part(part: npt.NDArray[np.bool_]) -> Fit | None:
        return fit(cases.only(part))

    terms = term_seconds(cases.work, TRUE.values())[:, :-1]
    found = fit_part((terms.argmax(axis=1) == 0) & (cases.work[:, COPY_ENGINE] == 0))
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)
    assert math.isnan(found.parameters.copy_engine_start_up)
    assert found.parameters.latency >= TRUE.latency * 0.9
    assert math.isnan(found.low.latency)
    without_latency = fit_part(terms.argmax(axis=1) != TERMS.index("in flight"))
    assert without_latency is not None
    assert math.isnan(without_latency.low.latency) and math.isfinite(without_latency.low.link_rate)
    whole = cases.work[:, WORK.index("wire")] == 148 * cases.work[:, WORK.index("requests")]
    assert min(whole.sum(), (~whole).sum()) > OF_LINK.min_cases
    assert fit_part(whole) is None
    assert fit_part(~whole) is None
