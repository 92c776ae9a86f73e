"""Rows of a chart: a name in words above each mark, and its figure at the right end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

ROW_PX: Final = 34
"""Height of a row: a line of words, and a mark below it."""
MARK_PX: Final = 7
"""Distance of marks from the middle of their row, downwards."""
NAME_PX: Final = 6
"""Distance of words from it, upwards."""
FIGURE_PX: Final = 85
"""Room for a figure: names are cut before it."""


def row_chart(
    field: str,
    order: Sequence[str],
    *layers: Any,
    name: str = "",
    figure: str = "",
    through: Sequence[Any] = (),
) -> Any:
    """A row for each value of `field`, in this order, with the marks of all `layers` in it.

    name: column with the words above a row, `field` itself if empty
    figure: column with the words at the right end; none if empty
    through: layers that are in no row
    """
    scale = alt.Scale(type="band", paddingInner=0, paddingOuter=0)
    row = alt.Y(f"{field}:N", sort=list(order), title=None, axis=None, scale=scale)
    room = alt.ExprRef(f"width - {FIGURE_PX if figure else 0}")
    left = _words([field, name or field]).mark_text(align="left", yOffset=-NAME_PX, limit=room)
    right = _words([field, figure]).mark_text(align="right", yOffset=-NAME_PX, fontWeight="bold")
    words = [left.encode(x=alt.value(0), text=f"{name or field}:N")]
    if figure:
        words.append(right.encode(x=alt.value("width"), text=f"{figure}:N"))
    rows = [*layers, *words]
    return alt.layer(*through, *(layer.encode(y=row) for layer in rows)).properties(
        height=alt.Step(ROW_PX)
    )


def _words(columns: Sequence[str]) -> alt.Chart:
    """One row for all marks that share a row of the chart."""
    words: alt.Chart = alt.Chart().transform_aggregate(
        groupby=[*dict.fromkeys(columns)], of="count()"
    )
    return words
