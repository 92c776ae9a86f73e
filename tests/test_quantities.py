"""Numbers with their units, as pages show them."""

from __future__ import annotations

import math

import pytest

from analysis.quantities import digits, percent, quantity, quantity_interval, ratio


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.5921e-3, "s", "3.592 ms"),
        (2.5e-8, "s", "25.00 ns"),
        (2.5e-6, "s", "2.500 µs"),
        (132.0, "1", "132"),
        (1.0991142, "1", "1.099"),
        (4.7e10, "B/s", "47.0 GB/s"),
        (math.nan, "s", ""),
    ],
)
def test_quantities_carry_a_prefix(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_intervals_share_a_prefix() -> None:
    assert quantity_interval(0.999e-3, 1.002e-3, "s") == "0.9990 to 1.002 ms"
    assert quantity_interval(math.nan, 1.0, "s") == ""
    assert (digits(0), digits(47.92), ratio(1.003), ratio(3.912)) == (
        "0",
        "47.9",
        "1.003×",
        "3.91×",
    )


def test_a_small_share_is_not_told_as_none() -> None:
    shares = (0.0, 0.0000315, 0.0123, 0.877)
    assert [percent(share) for share in shares] == ["0.0 %", "0.003 %", "1.2 %", "88 %"]
