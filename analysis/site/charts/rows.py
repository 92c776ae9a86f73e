"""Rows of a chart: a name in words above each mark, and its figure at the right end."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.site.charts.theme import Chart, Select, colour, faded_if_stale, present

ROW_PX: Final = 34
"""Height of a row: a line of words, and a mark below it."""
MARK_PX: Final = 7
"""Distance of marks from the middle of their row, downwards."""
NAME_PX: Final = 6
"""Distance of words from it, upwards."""
FIGURE_PX: Final = 85
"""Room for a figure: names are cut before it."""
LONG_NAME: Final = 20
"""Names in a legend are one below the other if one has more letters."""


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
        start = alt.XValue(place)  # type: ignore[no-untyped-call]
        return text.encode(x=start, text=alt.Text(f"{column}:N"))

    rows = [*layers, words(name or field, 0, align="left", limit=room)]
    if figure:
        rows.append(words(figure, "width", align="right", fontWeight="bold"))
    return alt.layer(*through, *(layer.encode(y=row) for layer in rows)).properties(
        height=alt.Step(ROW_PX)
    )


def dot_chart(
    table: pd.DataFrame,
    x: alt.X,
    row: str,
    order: Sequence[str],
    description: str,
    columns: Mapping[str, str],
    selects: Sequence[Select] = (),
    *,
    by: str = "",
    names: Sequence[str] = (),
    legend: str | None = None,
    interval: Sequence[str] = (),
    name: str = "",
    figure: str = "",
    through: Sequence[Any] = (),
) -> Chart | None:
    """Dots in the rows of `row_chart`, faint if stale; None for an empty `table`.

    order: values of the column `row` from above; if empty, as in `table`
    by: column whose values, `names` or else as in `table`, have colours, in a legend of this title
    interval: columns with the ends of a rule through each dot
    """
    if table.empty:
        return None
    base = alt.Chart().encode(x=x)
    if by:
        names = names or list(dict.fromkeys(table[by]))
        shown = present(names, table[by])
        about = alt.Legend(title=legend, values=shown)
        if max(map(len, shown), default=0) > LONG_NAME:
            about.columns = 1
        base = base.encode(color=colour(by, names, about))
    dots = base.mark_point(filled=True, size=60, opacity=0.95, yOffset=MARK_PX)
    marks = [dots.encode(opacity=faded_if_stale()) if "state" in table else dots]
    if interval:
        rule = base.mark_rule(strokeWidth=1.4, yOffset=MARK_PX)
        low, high = interval
        marks.insert(0, rule.encode(alt.X(f"{low}:Q"), alt.X2(f"{high}:Q")))
    order = order or list(dict.fromkeys(table[row]))
    drawing = row_chart(row, order, *marks, name=name, figure=figure, through=through)
    return Chart(drawing, table, description, columns, selects)
