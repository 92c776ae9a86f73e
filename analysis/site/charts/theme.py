"""What a chart is, and how all charts look.

Colours go with the light and the dark palette of the page: each is a pair of CSS's light-dark().
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt
import pandas as pd
from altair.utils.schemapi import disable_debug_mode

# A chart is checked when it is written. Altair would also check each part when it is made. It takes
# 10 ms to find the class of a channel that is given as text, so charts name the class.
disable_debug_mode()

HEIGHT_PX: Final = 300
"""Height of the plot of a chart of lines or points."""

FONT: Final = "Arial, Helvetica, 'Liberation Sans', Roboto, sans-serif"
"""Fonts of one width, in which vl-convert measures the words of pictures."""

INK: Final = "light-dark(#1f2933,#e3e8ef)"
QUIET: Final = "light-dark(#5f6b7a,#9aa7b8)"
GRID: Final = "light-dark(#e4e8ee,#343c4a)"
COLOURS: Final = [
    "light-dark(#1f6fb2,#5aa9e6)",
    "light-dark(#c0660c,#f0a04b)",
    "light-dark(#0a8f72,#3cc4a0)",
    "light-dark(#a34a8a,#d98bc4)",
    "light-dark(#5a5fc7,#a5a8f5)",
    "light-dark(#6b7280,#a3acb9)",
    "light-dark(#b03a3a,#ee8a8a)",
    "light-dark(#7a7a00,#cfd05a)",
]
MAX_LINES: Final = 5
"""Maximum number of lines that a reader can tell apart."""

_LABELS: Final = {"labelColor": INK, "titleColor": QUIET, "labelFontSize": 11, "titleFontSize": 11}
_TITLED: Final = {**_LABELS, "titleFontWeight": "normal"}
CONFIGURATION: Final[dict[str, Any]] = {
    "background": "transparent",
    # Bold names at the ends of lines are a little wider than Vega measures them.
    "padding": {"left": 5, "top": 5, "right": 14, "bottom": 5},
    "font": FONT,
    "view": {"stroke": "transparent", "continuousHeight": HEIGHT_PX},
    "axis": {
        **_TITLED,
        **dict.fromkeys(("gridColor", "domainColor", "tickColor"), GRID),
        "titlePadding": 8,
        "labelLimit": 140,
        "labelFlush": False,
        "labelOverlap": "greedy",
        "labelSeparation": 6,
    },
    "axisQuantitative": {"tickCount": 6},
    "legend": {
        **_TITLED,
        "orient": "top",
        "columns": {"expr": "width < 450 ? 2 : 5"},
        "labelLimit": 240,
        "symbolSize": 80,
        "symbolStrokeWidth": 2,
    },
    "text": {"color": INK, "fontSize": 11},
    "rule": {"color": INK},
    "tick": {"color": INK},
    "range": {"category": COLOURS, "ordinal": {"scheme": ["#9bc4e8", "#3f8fcf", "#134a86"]}},
    "style": {"limit": {"color": QUIET}, "quiet": {"color": QUIET}, "band": {"color": QUIET}},
}


@dataclass(frozen=True)
class Select:
    """A menu above a chart. Rows with another value in `column` than the chosen one are hidden;
    rows without a value stay. `start` is chosen at first; None is the table's first value."""

    column: str
    label: str
    start: object = None


@dataclass(frozen=True)
class Chart:
    """An Altair chart of one table.

    drawing: a chart or layers without data; their fields are columns of `table`
    table: with text as pages show it; `href` is an address of the site, `state` may be `stale`
    description: what the chart shows, for those who do not see it
    columns: columns of the tooltip and of the table below the chart, with their titles
    selects: menus beside that of the machine, which every table with a column `machine` has
    """

    drawing: Any
    table: pd.DataFrame
    description: str
    columns: Mapping[str, str]
    selects: Sequence[Select] = ()


BASIS_COLUMNS: Final = {
    "variant": "variant",
    "case": "case",
    "short": "figure",
    "interval": "interval",
    "clock": "clock",
    "state": "state",
    "runs": "runs",
    "hosts": "hosts",
    "note": "note",
}
"""Columns of a chart of `StudyFacts.points`."""


def present(names: Iterable[str], column: pd.Series[Any]) -> list[str]:
    """Those of `names` that are in `column`, in their order."""
    found = set(column)
    return [name for name in names if name in found]


def si_axis(unit: str, **more: Any) -> alt.Axis:
    """An axis of a quantity in this base unit, with SI prefixes; `more` are Vega-Lite's."""
    return alt.Axis(labelExpr=f"format(datum.value, '~s') + '{unit}'", **more)


def log_scale() -> alt.Scale:
    """A logarithmic scale that ends near its data."""
    return alt.Scale(type="log", nice=False, padding=8)


def colour(field: str, names: Sequence[str], legend: alt.Legend | None = None) -> alt.Color:
    """A colour for each of `names`, in their order, with a legend if given."""
    return alt.Color(
        f"{field}:N", sort=list(names), scale=alt.Scale(domain=list(names)), legend=legend
    )


def faded_if_stale() -> Any:
    """The opacity of a mark, lower if its figure is stale."""
    return opacity_if("datum.state === 'stale'", 0.35, 0.95)


def opacity_if(test: str, then: float, otherwise: float) -> Any:
    """The opacity of a mark by a test of its row."""
    return alt.OpacityValue(otherwise, condition={"test": test, "value": then})


def band(axis: str, low: float, high: float) -> Any:
    """A pale band between two values on the axis x or y."""
    area = alt.Chart(pd.DataFrame({"low": [low], "high": [high]}))
    area = area.mark_rect(style="band", opacity=0.13)
    low_end, high_end = (alt.X, alt.X2) if axis == "x" else (alt.Y, alt.Y2)
    return area.encode(low_end("low:Q"), high_end("high:Q"))
