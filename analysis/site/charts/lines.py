"""Lines over a quantity, with their names at their ends; intervals of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import numpy as np
import pandas as pd

from analysis.base.errors import FieldError
from analysis.results.model.fit import PREDICTED
from analysis.site.charts.theme import (
    HEIGHT_PX,
    MAX_LINES,
    Chart,
    Select,
    colour,
    faded_if_stale,
    present,
)

LABEL_PX: Final = 16
"""Minimum distance of two names at the ends of lines."""
MAX_GAP: Final = 4
"""A line is drawn between two sizes that differ by at most this factor: nothing is known of what
lies between sizes further apart."""
REACH: Final = 1.25
"""The interval of a rate is drawn up to this multiple of the highest rate drawn with it."""
BEYOND: Final = 3
"""The interval of a time is drawn up to this factor beyond the extreme times drawn with it."""


def line_chart(
    table: pd.DataFrame,
    x: alt.X,
    y: alt.Y,
    line: str,
    order: Sequence[str],
    description: str,
    columns: Mapping[str, str],
    selects: Sequence[Select] = (),
    *,
    max_gap: float = MAX_GAP,
    intervals: bool = False,
    beneath: Sequence[Any] = (),
) -> Chart | None:
    """A line for each of `order` in the column `line`, at most MAX_LINES; None without rows.

    Rows whose `state` is PREDICTED are a dashed line without points; the measured points of the
    same name then have no line.

    max_gap: largest factor between neighbouring values that a line crosses, if x is logarithmic
    intervals: whether to draw `<y>_low` to `<y>_high`, clipped as by `clipped`
    beneath: layers to draw first
    """
    if table.empty:
        return None
    machine = ["machine"] if "machine" in table else []
    by = [*machine, *(select.column for select in selects)]
    names = present(order, table[line])
    if len(names) > MAX_LINES:
        raise FieldError(f"lines by {line}", f"at most {MAX_LINES}", ", ".join(names))
    along, value = (str(channel.shorthand).partition(":")[0] for channel in (x, y))
    table = table[table[line].isin(names)].reset_index(drop=True).sort_values(along)
    table = table.assign(state=table.get("state", "measured"))
    table = _with_stretches(table, along, [*by, line], max_gap if _is_log(x) else np.inf)
    table = clipped(table, value, by) if intervals else table
    groups = table.groupby(by, dropna=False) if by else [((), table)]
    heights = [_label_heights(rows, value, line, is_log=_is_log(y)) for _, rows in groups]
    table = table.assign(label_at=pd.concat([*heights, pd.Series(dtype=float)])).sort_index()
    base = alt.Chart().encode(x=x, y=y, color=colour(line, names))
    measured = base.transform_filter(f"datum.state !== '{PREDICTED}'")
    modelled = set(table.loc[table["state"] == PREDICTED, line])
    joined = measured.transform_filter(f"indexof({sorted(modelled)}, datum.{line}) < 0")
    silent = {"tooltip": alt.TooltipValue(None), "href": alt.HrefValue(None)}
    layers = [*beneath]
    if modelled:
        dashed = base.transform_filter(f"datum.state === '{PREDICTED}'")
        dashed = dashed.mark_line(strokeWidth=1.2, strokeDash=[4, 3])
        layers.append(dashed.encode(detail=alt.Detail("state:N"), **silent))
    joined = joined.mark_line(strokeWidth=1.5)
    layers.append(joined.encode(detail=alt.Detail("stretch:N"), **silent))
    if intervals:
        layers.append(measured.mark_rule().encode(alt.Y("begin:Q"), alt.Y2("reach:Q")))
    layers.append(measured.mark_point(filled=True, size=45).encode(opacity=faded_if_stale()))
    labels = base.transform_filter("isValid(datum.label_at)")
    labels = labels.mark_text(align="left", dx=8, fontWeight="bold")
    at = {"y": alt.Y("label_at:Q"), "text": alt.Text(f"{line}:N")}
    layers.append(labels.encode(**at, **silent))
    return Chart(alt.layer(*layers), table, description, columns, selects)


def _is_log(channel: Any) -> bool:
    return "log" in str(channel.to_dict().get("scale"))


def _with_stretches(
    table: pd.DataFrame, along: str, keys: list[str], max_gap: float
) -> pd.DataFrame:
    """`table` with `stretch`: a number for each part of a line without a gap."""
    places = [*(table[key] for key in keys), table["state"] == PREDICTED]
    lines = table.groupby(places, dropna=False, sort=False)
    before = lines[along].shift()
    is_gap = before.isna() | ((before > 0) & (table[along] / before > max_gap))
    number = lines.ngroup()
    stretch = is_gap.groupby(number).cumsum()
    return table.assign(stretch=number.astype(str) + "." + stretch.astype(str))


def _label_heights(table: pd.DataFrame, value: str, line: str, *, is_log: bool) -> pd.Series[Any]:
    """Where along y the name of each line is, by the index of its last row."""
    drawn = table.dropna(subset=value)
    ends = drawn[[one for one in (value, "begin", "reach") if one in drawn]]
    scaled: Any = np.log(ends.where(ends > 0)) if is_log else ends
    highest, least = float(scaled.max().max()), float(scaled.min().min())
    lowest = least if is_log else min(0.0, least)
    gap = (highest - lowest) * LABEL_PX / HEIGHT_PX
    last = scaled.loc[~drawn[line].duplicated(keep="last"), value].sort_values()
    places = last.to_list()
    for index in range(1, len(places)):
        places[index] = max(places[index], places[index - 1] + gap)
    for index in reversed(range(len(places))):
        places[index] = min(places[index], highest - gap * (len(places) - 1 - index))
    return pd.Series(np.exp(places) if is_log else places, index=last.index, dtype=float)


def clipped(table: pd.DataFrame, value: str, by: Sequence[str]) -> pd.DataFrame:
    """`table` with `begin` and `reach`: `<value>_low` and `<value>_high`, clipped so that wide
    intervals of few runs do not dominate the axis. `by` are the columns of the selects."""
    figures = table.groupby(list(by), dropna=False)[value]
    is_rate = value == "rate"
    least = figures.transform("min") * (0 if is_rate else 1 / BEYOND)
    most = figures.transform("max") * (REACH if is_rate else BEYOND)
    return table.assign(
        begin=np.maximum(table[f"{value}_low"], least),
        reach=np.minimum(table[f"{value}_high"], most),
    )
