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

    def words(column: str, place: Any, **style: Any) -> Any:
        """The words of `column`, once for all marks that share a row."""
        once = alt.Chart().transform_aggregate(
            groupby=[*dict.fromkeys((field, column))], of="count()"
        )
        text = once.mark_text(yOffset=-NAME_PX, **style)
        return text.encode(x=alt.value(place), text=f"{column}:N")

    rows = [*layers, words(name or field, 0, align="left", limit=room)]
    if figure:
        rows.append(words(figure, "width", align="right", fontWeight="bold"))
    return alt.layer(*through, *(layer.encode(y=row) for layer in rows)).properties(
        height=alt.Step(ROW_PX)
    )
