"""The link model: times that a second program computed, sector by sector; other links; fits to
noisy times, with outliers and without data; and the cases that are held back from a fit."""

from dataclasses import astuple, fields, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from analysis.results.model import hardware
from analysis.results.model.fit import (
    FARTHEST_HELD,
    FITTED,
    INSIDE,
    MIN_LINK_CASES,
    OUTSIDE,
    fit,
    held_back,
    in_whole_lines,
    on_copy_engine,
)
from analysis.results.model.hardware import predict
from analysis.results.model.terms import (
    BINDS,
    NAMES,
    TERMS,
    TRANSLATION,
    WORK,
    Parameters,
    predicted_seconds,
    term_seconds,
    work_in,
    work_of,
)
from analysis.study import Case
from analysis.study.access import Access, access_of
from tests.linked import CALIBRATION, GATHER, KNOWN, MIB, SMS, TRUE, rows


def gather(pool_bytes: int, count: int = 2**18, **more: Any) -> Access:
    """Rows of 128 bytes, of which translation limits the time."""
    return replace(rows(128, pool_bytes=pool_bytes, **more), payload_bytes=count * 128)


def seconds(access: Access, by: Parameters) -> float:
    return float(predicted_seconds(np.array([work_of(access, SMS)]), by.values())[0])


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        (Access("contiguous", 172 * 10**6, in_flight_bytes=2048), 0.00337476271),
        (Access("contiguous", 10**9 + 1, stride_bytes=16, in_flight_bytes=8192), 0.0201807751),
        (Access("copy_engine", 172 * 10**6), 0.00314500847),
        (rows(656), 0.000350512712),
        (rows(672, 784, offset_bytes=96), 0.000350104051),
        (rows(512, warps=57), 0.00109686667),
        (rows(512, warps=40, in_flight_bytes=2**14), 0.000713097297),
        (rows(100, 116, offset_bytes=96, access_bytes=64, in_flight_bytes=64), 0.000544882712),
        (rows(96, layout="pages_2"), 0.000386706746),
        (replace(rows(656, access_bytes=16), reads="thread_rows"), 0.00128335),
        (gather(2**30, warps=64), 0.007787),
        (gather(2**31), 0.00420623393),
        (gather(2**35), 0.00937684863),
        (gather(2**35, streaming=1), 0.00901316313),
        (gather(2**35, layout="pages_2"), 0.00484972367),
        (gather(2**36, layout="repeated"), 0.00952860342),
        (gather(2**35, layout="contiguous", request_rows=64, stretch_rows=2**20), 0.0092268741),
        (gather(2**35, order="ascending"), 0.0045348746),
        (gather(2**35, 4096, order="ascending"), 0.00018139953),
        (gather(2**35, order="ascending", order_from_rows=2**20), 0.00937684863),
    ],
)
def test_times_are_those_of_a_second_computation(access: Access, expected: float) -> None:
    assert seconds(access, KNOWN) == pytest.approx(expected, rel=1e-8)


LINKS = {link.title: link for link in hardware.read_links()}
OWN = LINKS["PCIe 5.0 x16"]


def test_a_large_copy_over_another_link_has_its_rate_and_its_headers() -> None:
    by_sms, by_engine = Access("contiguous", MIB, in_flight_bytes=2048), Access("copy_engine", MIB)
    for copy in (by_sms, by_engine):
        large = replace(copy, payload_bytes=2**30)
        assert predict(large, SMS, OWN, TRUE, OWN) == pytest.approx(seconds(large, TRUE))
        half = predict(large, SMS, LINKS["PCIe 4.0 x16"], TRUE, OWN)
        assert half == pytest.approx(2 * seconds(large, TRUE), rel=0.05)
    bare = predict(large, SMS, LINKS["NVLink-C2C"], TRUE, OWN)
    assert 2**30 / bare == pytest.approx(375e9, rel=0.002)


def test_the_ends_and_a_third_of_a_calibration_are_held_back() -> None:
    held = [
        (case, use)
        for variant in CALIBRATION.variants
        for case, use in zip(variant.cases, held_back(CALIBRATION, variant), strict=True)
    ]

    def values_of(key: str, *uses: str) -> set[int]:
        return {case.number(key) for case, use in held if use in uses and key in case.values}

    for key in ("row_bytes", "bytes"):
        fitted, outside = values_of(key, FITTED, INSIDE), values_of(key, OUTSIDE)
        assert min(outside) < min(fitted) and max(fitted) < max(outside), key
    variant = replace(
        CALIBRATION.variant("sm_rows"), cases=tuple(Case({"n": n}, 1, "default") for n in range(9))
    )
    uses = held_back(replace(CALIBRATION, fitted_range={}), variant)
    assert [index for index, use in enumerate(uses) if use == INSIDE] == [2, 4, 6]
    beyond = held_back(replace(CALIBRATION, fitted_range={"n": (1, 7)}), variant)
    assert beyond == [OUTSIDE, *uses[:7], OUTSIDE]
    assert {use for v in GATHER.variants for use in held_back(GATHER, v)} == {FITTED}


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


def calibration(
    accesses: list[Access | None] = LINK, seed: int = 3, known: Parameters = KNOWN
) -> pd.DataFrame:
    """The calibration cases of one run, with 1 % of noise in their times."""
    work = np.array([work_of(access, SMS) for access in accesses if access])
    noise = np.exp(np.random.default_rng(seed).normal(0, 0.01, len(work)))
    measured = predicted_seconds(work, known.values()) * noise
    return pd.DataFrame(work, columns=WORK).assign(measured=measured, error=0.01, runs=4)


def fitted(cases: pd.DataFrame, resamples: int = 3) -> pd.DataFrame:
    """The fit. Intervals take most of its time."""
    with patch("analysis.results.model.fit.RESAMPLES", resamples):
        found = fit(cases)
    assert found is not None and [*found.index] == [*NAMES]
    return found


def test_parameters_are_recovered_with_intervals_as_wide_as_the_noise() -> None:
    assert [*NAMES] == [field.name for field in fields(Parameters)]
    found = fitted(calibration(), resamples=100)
    assert set(found["cases"]) == {len(calibration())} and set(found["runs"]) == {4}
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
    cases.loc[::15, "measured"] *= 1.4
    assert fitted(cases)["value"]["link_rate"] == pytest.approx(TRUE.link_rate, rel=0.02)
    unsure = calibration()
    unsure.loc[::2, "measured"] *= 1.03  # by so little that they are no outliers
    unsure.loc[::2, "error"] = 0.5
    assert fitted(unsure)["value"]["link_rate"] == pytest.approx(TRUE.link_rate, rel=0.006)


def test_parameter_without_data_is_unknown_or_a_bound() -> None:
    cases = calibration()
    terms = term_seconds(work_in(cases), TRUE.values())[:, :-1]

    def of(part: npt.NDArray[np.bool_]) -> pd.DataFrame:
        return fitted(cases[part])

    found = of((terms.argmax(axis=1) == 0) & ~on_copy_engine(cases))
    assert found["value"]["link_rate"] == pytest.approx(TRUE.link_rate, rel=0.02)
    assert np.isnan(found["value"]["copy_engine_start_up"])
    assert found["value"]["latency"] >= TRUE.latency * 0.9
    assert np.isnan(found["ci_low"]["latency"])
    low = of(terms.argmax(axis=1) != TERMS.index("in flight"))["ci_low"]
    assert np.isnan(low["latency"]) and np.isfinite(low["link_rate"])
    whole = in_whole_lines(cases)
    assert min(whole.sum(), (~whole).sum()) > MIN_LINK_CASES
    few = np.arange(len(cases)) < MIN_LINK_CASES - 1
    assert [fit(cases[part]) for part in (whole, ~whole, few)] == [None] * 3


# Intervals take hundreds of fits.
@pytest.mark.parametrize("resamples", [3, pytest.param(100, marks=pytest.mark.long)])
def test_the_third_step_finds_the_walker_again(resamples: int) -> None:
    both = calibration([*LINK, *POOLS], seed=1)
    found = fitted(both, resamples)
    for name in (name for name in NAMES if BINDS.get(name) == TRANSLATION):
        value = found["value"][name]
        assert value == pytest.approx(getattr(KNOWN, name), rel=0.15), name
        assert resamples == 3 or found["ci_low"][name] <= value <= found["ci_high"][name]
    small = both["entries"] <= FARTHEST_HELD
    for cases in (calibration(), both[small]):  # without pools, or with small ones alone
        assert np.isnan(fitted(cases)["value"]["walk"])


def test_a_wait_that_the_link_may_hide_is_found() -> None:
    known = replace(KNOWN, region_wait=200e-9)
    seen = [pool for pool in POOLS if pool and pool.order == "random" and pool.row_bytes < 656]
    seen += [ascending(pool_gib) for pool_gib in (4, 16)]
    found = fitted(calibration([*LINK, *seen], known=known))["value"]
    held_back = ascending(40)
    by_fit = seconds(held_back, Parameters(*found))
    assert by_fit == pytest.approx(seconds(held_back, known), rel=0.1)


def ascending(pool_gib: int) -> Access:
    """Rows of 656 bytes in ascending order."""
    order = rows(656, pool_bytes=pool_gib * 2**30, order="ascending")
    return replace(order, payload_bytes=2**18 * 656)
