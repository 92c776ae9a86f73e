"""Ends of drawn intervals."""

from __future__ import annotations

import re
from typing import Any

import altair as alt
import pandas as pd
import pytest
import vl_convert

from analysis.site.charts.intervals import BEYOND, REACH, drawn_whole, within_reach

ROWS = [
    ("box", "narrow", 1.0, 0.5, 1.5),
    ("box", "endless", 2.0, 1e-9, 40.0),
    ("box", "none", 1.5, None, None),
    ("other", "faster", 16.0, 8.0, 17.0),
]


def rows(value: str) -> alt.Chart:
    columns = ["machine", "variant", value, f"{value}_low", f"{value}_high"]
    return alt.Chart(pd.DataFrame(ROWS, columns=columns))


def drawn(chart: Any) -> dict[str, tuple[float, float]]:
    """Ends of the intervals in the picture, from its text for screen readers."""
    rules = chart.mark_rule().encode(y="variant:N", x="begin:Q", x2="reach:Q")
    svg = vl_convert.vegalite_to_svg(rules.to_dict())
    pattern = r"begin: ([\d.e−+-]+); variant: (\w+); reach: ([\d.]+)"
    found = re.findall(pattern, svg)
    assert len(found) == svg.count("begin: ")
    return {variant: (float(begin), float(reach)) for begin, variant, reach in found}


@pytest.mark.parametrize(
    "value, endless",
    [("rate", (1e-9, 2.0 * REACH)), ("seconds", (1.0 / BEYOND, 2.0 * BEYOND))],
)
def test_a_wide_interval_leaves_the_axis_to_the_figures_of_its_machine(
    value: str, endless: tuple[float, float]
) -> None:
    """A figure without an interval has none in the chart."""
    intervals = drawn(within_reach(rows(value), value))
    assert intervals.pop("endless") == pytest.approx(endless, rel=0.01, abs=1e-6)
    assert intervals == {"narrow": (0.5, 1.5), "faster": (8.0, 17.0)}


@pytest.mark.parametrize(
    "value, end, whole",
    [
        ("rate", "begin", {"narrow", "endless", "faster"}),
        ("rate", "reach", {"narrow", "faster"}),
        ("seconds", "begin", {"narrow", "faster"}),
        ("seconds", "reach", {"narrow", "faster"}),
    ],
)
def test_interval_has_a_tick_only_at_its_end(value: str, end: str, whole: set[str]) -> None:
    assert drawn(drawn_whole(within_reach(rows(value), value), value, end)).keys() == whole
