"""To where intervals are drawn."""

from __future__ import annotations

import re

import altair as alt
import pandas as pd
import pytest
import vl_convert

from analysis.charts.intervals import BEYOND, IS_WHOLE, REACH, between_reaches, with_reach

ROWS = [("box", "narrow", 1.0, 0.5, 1.5), ("box", "wide", 2.0, 1.0, 40.0)]
OTHER = ("other", "faster", 16.0, 8.0, 17.0)


def drawn(value: str, *, whole: bool = False) -> list[float]:
    """The ends of the intervals in the picture, by the words for those who cannot see it."""
    columns = ["machine", "variant", value, f"{value}_low", f"{value}_high"]
    chart = with_reach(alt.Chart(pd.DataFrame([*ROWS, OTHER], columns=columns)), value)
    shown = chart.transform_filter(IS_WHOLE) if whole else chart
    rules = shown.mark_rule().encode(y="variant:N", x=f"{value}_low:Q", x2="reach:Q")
    svg = vl_convert.vegalite_to_svg(rules.to_dict())
    return sorted(float(end) for end in re.findall(r"reach: ([\d.]+)", svg))


def test_the_interval_of_a_rate_reaches_little_beyond_the_highest_rate_of_its_machine() -> None:
    assert drawn("rate") == [1.5, 2.0 * REACH, 17.0]
    assert drawn("rate", whole=True) == [1.5, 17.0]


def test_the_interval_of_a_time_is_drawn_to_its_end() -> None:
    assert drawn("seconds") == drawn("seconds", whole=True) == [1.5, 17.0, 40.0]


def test_an_interval_of_many_decades_leaves_the_axis_to_the_times() -> None:
    """And what has no interval has none drawn."""
    rows = [
        ("box", "narrow", 1.0, 0.5, 1.5),
        ("box", "endless", 2.0, 1e-9, 40.0),
        ("box", "none", 1.5, None, None),
        OTHER,
    ]
    columns = ["machine", "variant", "seconds", "seconds_low", "seconds_high"]
    chart = between_reaches(alt.Chart(pd.DataFrame(rows, columns=columns)), "seconds")
    rules = chart.mark_rule().encode(y="variant:N", x="begin:Q", x2="reach:Q")
    svg = vl_convert.vegalite_to_svg(rules.to_dict())
    found = {
        variant: (float(begin), float(reach))
        for begin, variant, reach in re.findall(
            r"begin: ([\d.]+); variant: (\w+); reach: ([\d.]+)", svg
        )
    }
    assert found.keys() == {"narrow", "endless", "faster"}
    assert found["narrow"] == (0.5, 1.5)
    assert found["endless"] == pytest.approx((1.0 / BEYOND, 2.0 * BEYOND), rel=0.01)
    assert found["faster"] == (8.0, 17.0)
