"""Ticks of logarithmic axes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import pytest

from analysis.site.charts.still import Still
from analysis.site.charts.theme import finish, panels
from analysis.site.charts.writing import write_chart


def labels(folder: Path, ends: list[float], base: Any = alt.Undefined, **axis: Any) -> list[float]:
    """Ticks of an axis of 200 px, in a panel."""
    table = pd.DataFrame({"machine": "box", "seconds": ends})
    along = alt.Y(
        "seconds:Q",
        scale=alt.Scale(type="log", nice=False, base=base),
        axis=alt.Axis(labelExpr="datum.value", **axis),
    )
    layers = alt.layer(alt.Chart().mark_point().encode(y=along)).properties(height=200)
    write_chart(finish(panels(layers, table), "Times.", 80, 60), folder, "log", "charts")
    drawn = Still(folder / "log.vg.json").drawn(300).svg
    return sorted(map(float, re.findall(r">([\d.]+(?:e-?\d+)?)</text>", drawn)))


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ([9e-6, 210e-6], [1e-5, 2e-5, 5e-5, 1e-4, 2e-4]),
        ([1e-9, 1e3], [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1000]),
    ],
)
def test_decades_are_labelled_and_others_if_space_permits(
    tmp_path: Path, ends: list[float], shown: list[float]
) -> None:
    assert labels(tmp_path, ends) == shown


def test_range_below_a_decade_has_labels(tmp_path: Path) -> None:
    assert len(labels(tmp_path, [5.2, 9.1])) >= 3


def test_given_ticks_and_those_of_another_base_are_kept(tmp_path: Path) -> None:
    assert labels(tmp_path, [1, 100], values=[3, 30]) == [3, 30]
    assert labels(tmp_path, [1, 64], base=2) == [1, 2, 4, 8, 16, 32, 64]
