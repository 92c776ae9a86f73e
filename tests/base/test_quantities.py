"""Numbers with their units, as pages show them."""

from __future__ import annotations

import math

import pytest

from analysis.base.quantities import percent, quantity, quantity_interval, ratio, ratio_interval


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.5921e-3, "s", "3.592 ms"),
        (2.5e-8, "s", "25.00 ns"),
        (0, "B", "0 B"),
        (2.5e-6, "s", "2.500 µs"),
        (132.0, "1", "132"),
        (1.0991142, "1", "1.099"),
        (4.7e10, "B/s", "47.0 GB/s"),
        (math.nan, "s", ""),
    ],
)
def test_quantities_carry_a_prefix(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "unit", "text"),
    [
        (290.2e-9, 77.92e-9, 1040e-9, "s", "78 to 1040 ns"),
        (0, 0, 25561.9, "B", "0 to 26 kB"),
        (995e-9, 990e-9, 1.012e-6, "s", "990.0 to 1012 ns"),
        (8.498e-3, 8.121e-3, 8.943e-3, "s", "8.12 to 8.94 ms"),
        (47e9, 30.12e9, 60.23e9, "B/s", "30 to 60 GB/s"),
        (1.25, 0.5123, 3.0, "1", "0.51 to 3"),
        (0.0, -1.2e-9, 1.3e-9, "s", "-1.2 to 1.3 ns"),
        (1.0, math.nan, 1.0, "s", ""),
    ],
)
def test_an_interval_has_the_prefix_of_its_median_and_the_digits_it_supports(
    value: float, low: float, high: float, unit: str, text: str
) -> None:
    assert quantity_interval(value, low, high, unit) == text


def test_ratios_are_exact_only_near_one_and_small_shares_are_not_zero() -> None:
    assert (ratio(1.003), ratio(3.912)) == ("1.003×", "3.91×")
    intervals = {(0.752, 3.496): "0.75 to 3.5", (0.986, 6.64): "0.986 to 6.6"}
    assert {ends: ratio_interval(*ends) for ends in intervals} == intervals
    shares = {0.0: "0.0 %", 0.0000315: "0.003 %", 0.0123: "1.2 %", 0.877: "88 %"}
    assert {share: percent(share) for share in shares} == shares
