"""Rows of a chart, each with a name: left of the plot or, in a narrow column, above the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.site.charts.theme import LABEL_LIMIT_PX, WIDE_LABELS, Chart, finish, present

ROW_PX: Final = 25
NAME_PX: Final = 14
"""Height of a name above its row."""
COMPACT_ROW_PX: Final = 36
"""Height of a row with the name above its mark."""
BESIDE_PX: Final = 35
"""Margin beside the plot of a narrow column, without text at its right end."""


def named_rows(
    field: str,
    order: Sequence[str],
    font: str | None = None,
    limit_px: int = LABEL_LIMIT_PX,
    px: int = 0,
) -> alt.Y:
    """A row for each value of `field`, in this order, as `named` expects it.

    font: of the names left of the plot, which are cut at `limit_px`
    px: height of a group of rows, if several rows share a name
    """
    axis = alt.Axis(
        labelFont=font or alt.Undefined,
        labelLimit=alt.ExprRef(f"compact ? 1 : {limit_px}"),
        labelFontSize=alt.ExprRef("compact ? 0.1 : 11"),
        labelOpacity=alt.ExprRef("compact ? 0 : 1"),
        domain=False,
        ticks=False,
        grid=False,
    )
    return alt.Y(f"{field}:N", sort=list(order), title=None, axis=axis, scale=_spaced(px))


def _spaced(px: int) -> Any:
    """A scale with room for a name above each group of rows of a narrow column."""
    if not px:
        return alt.Undefined
    padding = alt.ExprRef(f"compact ? {NAME_PX / (px + NAME_PX):.3f} : 0.1")
    return alt.Scale(paddingInner=padding, paddingOuter=padding)


def variant_rows(names: Sequence[str], table: pd.DataFrame, px: int = 0) -> alt.Y:
    """A row for each variant in `table`, in the order of `names`; `px` as of `named_rows`."""
    return named_rows("variant", present(names, table["variant"]), WIDE_LABELS, px=px)


def named(row: alt.Y, *layers: Any, px: int = 0, row_px: int = ROW_PX) -> alt.LayerChart:
    """The `layers`, whose y is `row`, and the names above their rows in a narrow column.

    px: height of a group of rows that share a name, as of `row`
    row_px: height of a row in a wide column
    """
    height = alt.Step(px, **{"for": "position"}) if px else alt.Step(row_px)
    chart = alt.layer(*layers, _names(row, is_group=bool(px)), height=height)
    assert isinstance(chart, alt.LayerChart)  # no layer has facets
    return chart


def _names(row: alt.Y, *, is_group: bool) -> alt.Chart:
    """One text for each row."""
    field = str(row.shorthand).partition(":")[0]
    above = -NAME_PX / 2 if is_group else -COMPACT_ROW_PX / 2 + 5
    place = row.bandPosition(0) if is_group else row
    names: alt.Chart = (
        alt.Chart()
        .transform_window(place="row_number()", groupby=[field])
        .transform_filter("datum.place === 1")
        .mark_text(
            align="left",
            dy=above,
            font=WIDE_LABELS,
            fontSize=10,
            opacity={"expr": "compact ? 1 : 0"},
        )
        .encode(x=alt.value(0), y=place, text=f"{field}:N")
    )
    return names


def finish_rows(chart: Any, description: str, margin: int, right_px: int = 0, px: int = 0) -> Chart:
    """`theme.finish` for a chart of `named` rows.

    margin: beside the plot of a wide column, in pixels
    right_px: width of the text at the right end of a narrow column
    px: height of a group of rows that share a name
    """
    compact_row = px + NAME_PX if px else COMPACT_ROW_PX
    return finish(chart, description, margin, BESIDE_PX + right_px, compact_row_px=compact_row)
