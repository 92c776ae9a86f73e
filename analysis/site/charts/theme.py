"""What all charts share: colours in a light and a dark palette, selects, and the filter they set.

A chart names no colour: it takes them from the configuration, so that the page can hand the same
chart another palette.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import altair as alt
import pandas as pd
import vl_convert
from altair.utils.schemapi import disable_debug_mode

from analysis.site.facts.basis import SPREAD
from analysis.site.facts.points import CASE_PREFIX
from analysis.site.facts.study_facts import StudyFacts

Chart = alt.TopLevelMixin

# A chart is checked when it is written. Altair would also check each part when it is made.
disable_debug_mode()

SHOWN_ROLES: Final = ["step", "reference", "beyond"]
"""Roles with a colour; ceilings are rules."""

LEAST_PX: Final = 54
"""No plot is narrower; on a narrow screen the box around it scrolls."""

CELL_PX: Final = 52
"""A cell of a map as wide as the figure in it."""

LABEL_LIMIT_PX: Final = 190
"""A variant's name is cut where it is wider."""

FONT: Final = "Arial, Helvetica, 'Liberation Sans', Roboto, sans-serif"
"""Fonts of one width, in which vl-convert measures the words of pictures: in a wider one, labels
would be cut and legends overlap."""

WIDE_LABELS: Final = 'Menlo, Consolas, "DejaVu Sans Mono", monospace'

STEP_COLOUR, GREY = 0, 5
"""Of the colours of categories, that of the steps, and the one that looks like a ceiling's."""

_LIGHT: Final[dict[str, Any]] = {
    "ink": "#1f2933",
    "quiet": "#5f6b7a",
    "grid": "#e4e8ee",
    "category": [
        "#1f6fb2",
        "#c0660c",
        "#0a8f72",
        "#a34a8a",
        "#5a5fc7",
        "#6b7280",
        "#b03a3a",
        "#7a7a00",
    ],
    "ramp": ["#9bc4e8", "#3f8fcf", "#134a86", "#07213f"],
}
_DARK: Final[dict[str, Any]] = {
    "ink": "#e3e8ef",
    "quiet": "#9aa7b8",
    "grid": "#343c4a",
    "category": [
        "#5aa9e6",
        "#f0a04b",
        "#3cc4a0",
        "#d98bc4",
        "#a5a8f5",
        "#a3acb9",
        "#ee8a8a",
        "#cfd05a",
    ],
    "ramp": ["#2b6cb0", "#4f9be0", "#8cc8f5", "#e0f2ff"],
}


COLOURS: Final = len(_LIGHT["category"])

COMPACT_PX: Final = 620
"""A narrower column is narrow: charts are `compact` in it."""

LEGEND_COLUMNS: Final = [6, 4, 3, 2, 1]
"""Numbers of legend columns to try in turn until the legend fits."""

COLUMN_SIGNAL: Final = "column_px"
"""The width of the column in which a chart is; the page sets it."""

COLUMN_PX: Final = 966
"""Its width in a window of 1280 px."""


def _both(light: str, dark: str) -> str:
    """A colour of CSS that goes with the palette of the page."""
    return f"light-dark({light},{dark})"


def palettes() -> dict[str, dict[str, Any]]:
    """Vega configurations by the names of Material's palettes."""
    return {"default": _vega(_LIGHT), "slate": _vega(_DARK)}


def _vega(colours: dict[str, Any]) -> dict[str, Any]:
    """A Vega configuration."""
    empty = {"mark": "point", "data": {"values": []}}
    compiled = vl_convert.vegalite_to_vega(empty, config=_configuration(colours))
    configuration: dict[str, Any] = compiled["config"]
    return configuration


def _configuration(colours: dict[str, Any]) -> dict[str, Any]:
    """A Vega-Lite configuration. Compiling a chart copies the colours of styles and headers into
    it: those are signals, which the palette sets."""
    ink, quiet, grid = {"expr": "ink"}, {"expr": "quiet"}, colours["grid"]
    labels = {"labelColor": ink, "titleColor": quiet, "labelFontSize": 11, "titleFontSize": 11}
    return {
        "params": [{"name": name, "value": colours[name]} for name in ("ink", "quiet")],
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": "transparent"},
        "axis": {
            **labels,
            "gridColor": grid,
            "domainColor": grid,
            "tickColor": grid,
            "titleFontWeight": "normal",
            "labelFontSize": {"expr": "compact ? 10 : 11"},
            "titlePadding": 8,
            "labelLimit": 260,
        },
        "header": {
            **labels,
            "labelAnchor": "start",
            "labelFontSize": {"expr": "compact ? 10 : 12"},
            "labelFontWeight": 600,
        },
        "legend": {
            **labels,
            "titleFontWeight": "normal",
            "labelLimit": 240,
            "symbolSize": 80,
            "columns": {"expr": "legend_columns"},
            "layout": {
                "bottom": {"direction": "vertical", "anchor": "start"},
                "top": {
                    "direction": {"signal": "compact ? 'vertical' : 'horizontal'"},
                    "anchor": "start",
                    "bounds": "full",
                },
            },
        },
        "text": {"color": ink, "fontSize": 11},
        "range": {
            "category": colours["category"],
            "ordinal": {"scheme": colours["ramp"]},
        },
        "style": {
            "ceiling": {"color": quiet},
            "interval": {"color": ink},
            "published": {"color": ink},
            "quiet": {"color": quiet},
            "band": {"color": quiet, "opacity": 0.13},
        },
    }


CONFIGURATION: Final = _configuration(_LIGHT)
"""What charts are compiled with; the page draws them with one of `palettes`."""


@cache
def both_palettes() -> dict[str, Any]:
    """The Vega configuration of pictures that stand in a page of either palette."""
    return _vega(
        {name: _both(_LIGHT[name], _DARK[name]) for name in ("ink", "quiet", "grid")}
        | {"category": list(map(_both, _LIGHT["category"], _DARK["category"]))}
        # Vega mixes the colours of a ramp, and can mix none of CSS.
        | {"ramp": _LIGHT["ramp"]}
    )


def select(
    name: str,
    label: str,
    options: Sequence[object],
    value: object,
    none: str = "all",
    labels: Sequence[str] = (),
) -> alt.Parameter:
    """A select above the chart. Its `options` are called by their `labels`; left out, each is
    called what it is, and None `none`."""
    labels = labels or [none if option is None else str(option) for option in options]
    binding = alt.binding_select(options=list(options), labels=list(labels), name=label)
    return alt.param(name=name, value=value, bind=binding)


def panels(
    layers: Any, table: pd.DataFrame, *selects: alt.Parameter, filters: Sequence[str] = ()
) -> Any:
    """A panel of `layers` for each machine in `table`, one below the other, and selects of them: by
    machine first, then `selects`, whose `filters` are the caller's."""
    machines = sorted(set(table["machine"]))
    of_machine = "machine_shown === null || datum.machine === machine_shown"
    chart = layers.facet(
        facet=alt.Facet("machine:N", title=None),
        columns=1,
        data=table,
        resolve=alt.Resolve(axis=alt.AxisResolveMap(x="independent")),
        transform=[alt.FilterTransform(one) for one in (of_machine, *filters)],
    )
    _give(chart, select("machine_shown", "machine", [None, *machines], None), *selects)
    return chart


def _give(chart: Any, *parameters: alt.Parameter) -> None:
    """Add `parameters`, which belong to none of its views, to `chart`. `add_params`, like
    its other methods, copies all that it consists of, some parts a dozen times."""
    known = [] if chart.params is alt.Undefined else chart.params
    chart.params = [*known, *(one.param for one in parameters)]


def present(names: Iterable[str], column: pd.Series) -> list[str]:
    """Those of `names` that are in `column`, in their order."""
    found = set(column)
    return [name for name in names if name in found]


def si_axis(unit: str, **options: Any) -> alt.Axis:
    """An axis of a quantity in this base unit, with SI prefixes; `options` are Altair's."""
    return alt.Axis(labelExpr=f"format(datum.value, '~s') + '{unit}'", **options)


def clock_select(facts: StudyFacts, points: pd.DataFrame, value: str) -> alt.Parameter:
    """Select of the shown time, of those by which `points` have a `value`; the default is the time
    by which each variant is compared."""
    labels = [facts.study.metrics[metric].label for metric in facts.study.time_metrics]
    clocks = present(labels, points.loc[points[value].notna(), "clock"])
    return select("clock_shown", "clock", [None, *clocks], None, none="as compared")


def varying_keys(points: pd.DataFrame, facts: StudyFacts) -> list[str]:
    """Case keys, as columns of `points`, with more than one value; or with one that not all cases
    of a variant have."""
    columns = [f"{CASE_PREFIX}{key}" for key in facts.study.case_keys]
    return [
        column for column in columns if points[column].nunique() > 1 or partly_keyed(points, column)
    ]


def partly_keyed(points: pd.DataFrame, key: str) -> list[str]:
    """Variants that have `key` in some of their cases only: in the others, it is at no value."""
    has_key = points[key].notna().groupby(points["variant"])
    partly = has_key.any() & ~has_key.all()
    return [str(name) for name in partly.index[partly]]


def case_selects(
    points: pd.DataFrame, keys: Sequence[str], headline: dict[str, Any]
) -> list[alt.Parameter]:
    """A select for each of `keys`: at the headline case; where that has no such key, at none if
    that is a choice, else at the most."""
    selects = []
    for key in keys:
        name = key.removeprefix(CASE_PREFIX)
        # Where some variants lack a key, its whole numbers have become floats beside the gaps.
        values = sorted(points[key].dropna().convert_dtypes().unique().tolist())
        options = [*([None] if partly_keyed(points, key) else []), *values]
        value = headline.get(name, None if None in options else max(values, default=None))
        selects.append(select(f"{key}_shown", name, options, value, none="none"))
    return selects


def shown(points: pd.DataFrame, keys: Sequence[str]) -> str:
    """The filter that the selects of the clock and `keys` set."""
    terms = [
        "(clock_shown === null ? datum.is_default === 1 : datum.clock === clock_shown"
        " || datum.state === 'published' || !isValid(datum.seconds))",
        *(_case_shown(points, key) for key in keys),
    ]
    return " && ".join(terms)


SELECTED: Final = re.compile(r"\(isValid\(datum\.(\w+)\) \? datum\.\1 === (\w+) : ")
"""Column and select in a filter of `_case_shown`."""


def _case_shown(points: pd.DataFrame, key: str) -> str:
    """Whether a point has the value selected, or is of a variant that never has such a key."""
    partly = partly_keyed(points, key)
    never = f"{key}_shown === null || indexof({partly}, datum.variant) < 0" if partly else "true"
    return f"(isValid(datum.{key}) ? datum.{key} === {key}_shown : {never})"


def tooltip(facts: StudyFacts) -> list[alt.Tooltip]:
    """The tooltip of a point."""
    value = "rate, GB/s" if facts.figures.are_rates else "time"
    return text_tooltip(
        *(("title", "what"), "variant", "machine", "case"),
        *(("short", value), ("interval", SPREAD), "clock", "state"),
        *(("n", "samples"), "rounds", "runs", "hosts", ("run", "newest run"), "note"),
    )


def text_tooltip(*fields: str | tuple[str, str]) -> list[alt.Tooltip]:
    """A tooltip of columns with text: each by its name, or as (name, title)."""
    named = [(field, field) if isinstance(field, str) else field for field in fields]
    return [alt.Tooltip(f"{name}:N", title=title) for name, title in named]


def finish(
    chart: Any,
    description: str,
    margin: int,
    compact_margin: int,
    least: int = LEAST_PX,
    compact_least: int = LEAST_PX,
    compact_row_px: int = 0,
) -> Chart:
    """Give `chart` its description and its margins beside the plot, in pixels.

    The plot takes the rest of the column, but at least `least` pixels, in a narrow column
    `compact_least`. The parameter `compact` is true in a narrow column, in which rows are
    `compact_row_px` high, if given.
    """
    chart.description = description
    chart.usermeta = {
        "legendColumns": LEGEND_COLUMNS,
        "plot": f"max(compact ? {compact_least} : {least},"
        f" {COLUMN_SIGNAL} - (compact ? {compact_margin} : {margin}))",
    }
    if compact_row_px:
        chart.usermeta["compactRow"] = compact_row_px
    _give(
        chart,
        alt.param(name=COLUMN_SIGNAL, value=COLUMN_PX),
        alt.param(name="compact", expr=f"{COLUMN_SIGNAL} < {COMPACT_PX}"),
        alt.param(name="legend_columns", value=0),
    )
    finished: Chart = chart
    return finished
