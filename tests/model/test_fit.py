"""Fitting: parameters found again from noisy times, outliers and what nothing shows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.model.access import access_of
from analysis.model.fit import FEWEST_CASES, Fit, fit, held_back
from analysis.model.terms import WORK, predicted_seconds, term_seconds, work_of
from tests.linked import CALIBRATION, SMS, TRUE

COPY_ENGINE = WORK.index("copy engine")


def calibration_work() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Work of every calibration case, their times with 1 % of noise, and that."""
    cells = [(variant, case) for variant in CALIBRATION.variants for case in variant.cases]
    accesses = [access_of(*cell) for cell in cells]
    work = np.array([work_of(access, SMS) for access in accesses if access])
    errors = np.full(len(work), 0.01)
    noise = np.exp(np.random.default_rng(3).normal(0, errors))
    return work, predicted_seconds(work, TRUE.values()) * noise, errors


def test_parameters_are_recovered_from_noisy_times() -> None:
    found = fit(*calibration_work())
    assert isinstance(found, Fit)
    for name in ("link_rate", "request_rate", "sm_request_rate", "latency"):
        true, value = getattr(TRUE, name), getattr(found.parameters, name)
        assert value == pytest.approx(true, rel=0.02), name
        assert getattr(found.low, name) <= value <= getattr(found.high, name)
    assert found.parameters.half_line == pytest.approx(TRUE.half_line, abs=2)
    assert found.parameters.start_up == pytest.approx(TRUE.start_up, abs=3e-6)
    assert found.parameters.index_latency == pytest.approx(TRUE.index_latency, abs=0.2e-6)


def test_slow_outliers_do_not_move_the_fit() -> None:
    work, seconds, errors = calibration_work()
    seconds[::15] *= 1.4
    found = fit(work, seconds, errors)
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)


def test_a_case_counts_less_the_less_sure_it_is() -> None:
    work, seconds, errors = calibration_work()
    contiguous = (work[:, COPY_ENGINE] == 0).nonzero()[0][-1]
    seconds[contiguous] *= 1.2
    errors[contiguous] = 0.5
    found = fit(work, seconds, errors)
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)


def test_what_nothing_shows_is_unknown_or_only_a_bound() -> None:
    work, seconds, errors = calibration_work()
    terms = term_seconds(work, TRUE.values())[:, :-1]
    link_bound = (terms.argmax(axis=1) == 0) & (work[:, COPY_ENGINE] == 0)
    found = fit(work[link_bound], seconds[link_bound], errors[link_bound])
    assert found is not None
    assert found.parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.02)
    assert math.isnan(found.parameters.copy_engine_start_up)
    assert found.parameters.latency >= TRUE.latency * 0.9
    assert math.isnan(found.low.latency)
    assert fit(work[:5], seconds[:5], errors[:5]) is None
    whole = work[:, WORK.index("wire")] == 148 * work[:, WORK.index("requests")]
    assert whole.sum() > FEWEST_CASES and (~whole).sum() > FEWEST_CASES
    assert fit(work[whole], seconds[whole], errors[whole]) is None
    assert fit(work[~whole], seconds[~whole], errors[~whole]) is None


def test_a_third_is_held_back_from_every_value_of_every_key() -> None:
    assert held_back(9).tolist() == [i in (2, 4, 6) for i in range(9)]
    variant = CALIBRATION.variant("sm_rows")
    occupancy = [
        case for case, out in zip(variant.cases, held_back(len(variant.cases)), strict=True) if out
    ]
    seen = {case["in_flight"] for case in occupancy if case["blocks"] != 0}
    assert seen == {1, 2, 4}
