"""Fits: parameters recovered from noisy times, outliers, and parameters without data."""

from __future__ import annotations

from dataclasses import astuple, fields, replace
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from analysis.results.model.fit import FARTHEST_HELD, NAMES, Calibration, fit
from analysis.results.model.terms import (
    TERMS,
    WORK,
    Parameters,
    predicted_seconds,
    term_seconds,
    work_of,
)
from analysis.results.model.translation import Walker
from analysis.study.access import Access, access_of
from analysis.study.calibration import MIN_LINK_CASES
from tests.linked import CALIBRATION, KNOWN, SMS, TRUE, rows

LINK = [access_of(v, case) for v in CALIBRATION.variants for case in v.cases if v.link]
POOLS = [
    replace(
        rows(row, pool_bytes=int(pool * 2**30), order=order, streaming=streaming),
        payload_bytes=2**18 * row,
    )
    for pool in (0.25, 0.75, 1, 1.5, 2, 4, 8, 16, 24, 40)
    for row in (128, 256, 656)
    for order in ("random", "ascending")
    for streaming in (0, 1)
]


def calibration(accesses: list[Access | None] = LINK, seed: int = 3) -> Calibration:
    """The calibration cases of one run, with 1 % of noise in their times."""
    work = np.array([work_of(access, SMS) for access in accesses if access])
    errors = np.full(len(work), 0.01)
    noise = np.exp(np.random.default_rng(seed).normal(0, errors))
    return Calibration(work, predicted_seconds(work, KNOWN.values()) * noise, errors, errors * 400)


def fitted(cases: Calibration, resamples: int = 3) -> pd.DataFrame:
    """The fit. Intervals take most of its time."""
    with patch("analysis.results.model.fit.RESAMPLES", resamples):
        found = fit(cases)
    assert found is not None and [*found.index] == [*NAMES]
    return found


def test_parameters_are_recovered_with_intervals_as_wide_as_the_noise() -> None:
    assert [*NAMES] == [field.name for field in fields(Parameters)]
    found = fitted(calibration(), resamples=100)
    assert set(found["cases"]) == {len(calibration().seconds)} and set(found["runs"]) == {4}
    found = found.assign(true=astuple(TRUE)).loc[:"copy_engine_start_up"]
    rates = found.loc[["link_rate", "request_rate", "sm_request_rate", "latency"]]
    assert [*rates["value"]] == pytest.approx([*rates["true"]], rel=0.02)
    assert (rates["ci_low"] <= rates["value"]).all() and (rates["value"] <= rates["ci_high"]).all()
    off = found["value"] - found["true"]
    assert abs(off["half_line"]) < 2
    assert abs(off["start_up"]) < 3e-6 and abs(off["index_latency"]) < 0.2e-6
    drawn = [fitted(calibration(seed=seed))["value"]["link_rate"] for seed in range(10, 30)]
    width = rates["ci_high"]["link_rate"] - rates["ci_low"]["link_rate"]
    assert width == pytest.approx(2 * 1.96 * np.std(drawn, ddof=1), rel=0.5)


def test_outliers_and_unsure_cases_do_not_move_the_fit() -> None:
    cases = calibration()
    cases.seconds[::15] *= 1.4
    assert fitted(cases)["value"]["link_rate"] == pytest.approx(TRUE.link_rate, rel=0.02)
    unsure = calibration()
    unsure.seconds[::2] *= 1.03  # by so little that they are no outliers
    unsure.errors[::2] = 0.5
    assert fitted(unsure)["value"]["link_rate"] == pytest.approx(TRUE.link_rate, rel=0.006)


def test_parameter_without_data_is_unknown_or_a_bound() -> None:
    cases = calibration()
    work, terms = cases.work, term_seconds(cases.work, TRUE.values())[:, :-1]

    def of(part: npt.NDArray[np.bool_]) -> pd.DataFrame:
        return fitted(cases.only(part))

    found = of((terms.argmax(axis=1) == 0) & ~cases.on_copy_engine)
    assert found["value"]["link_rate"] == pytest.approx(TRUE.link_rate, rel=0.02)
    assert np.isnan(found["value"]["copy_engine_start_up"])
    assert found["value"]["latency"] >= TRUE.latency * 0.9
    assert np.isnan(found["ci_low"]["latency"])
    low = of(terms.argmax(axis=1) != TERMS.index("in flight"))["ci_low"]
    assert np.isnan(low["latency"]) and np.isfinite(low["link_rate"])
    whole = cases.in_whole_lines
    assert min(whole.sum(), (~whole).sum()) > MIN_LINK_CASES
    few = np.arange(len(work)) < MIN_LINK_CASES - 1
    assert [fit(cases.only(part)) for part in (whole, ~whole, few)] == [None] * 3


# Intervals take hundreds of fits.
@pytest.mark.parametrize("resamples", [3, pytest.param(100, marks=pytest.mark.long)])
def test_the_third_step_finds_the_walker_again(resamples: int) -> None:
    both = calibration([*LINK, *POOLS], seed=1)
    found = fitted(both, resamples)
    for name in (field.name for field in fields(Walker)):
        value = found["value"][name]
        assert value == pytest.approx(getattr(KNOWN, name), rel=0.15), name
        assert resamples == 3 or found["ci_low"][name] <= value <= found["ci_high"][name]
    small = both.work[:, WORK.index("entries")] <= FARTHEST_HELD
    for cases in (calibration(), both.only(small)):  # without pools, or with small ones alone
        assert np.isnan(fitted(cases)["value"]["walk"])
