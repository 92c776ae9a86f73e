"""Maps: a cell with a figure for each row and column."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.site.charts.theme import Chart, Select

FIGURE_PX: Final = 22
"""Width of a figure."""


def map_chart(
    x: alt.X,
    y: alt.Y,
    colour: alt.Color,
    table: pd.DataFrame,
    description: str,
    columns: Mapping[str, str],
    selects: Sequence[Select] = (),
    *,
    opacity: Any = alt.Undefined,
    cell_px: int,
) -> Chart:
    """A cell for each row of `table`, with its `figure` if the cells are wide enough for it."""
    base = alt.Chart().encode(x=x, y=y)
    cells = table[str(x.shorthand).partition(":")[0]].nunique()
    is_wide = alt.ExprRef(f"width < {FIGURE_PX * cells} ? 0 : 1")
    drawing = alt.layer(
        base.mark_rect().encode(color=colour, opacity=opacity),
        base.mark_text(fontSize=10, color="white", lineBreak="\n", opacity=is_wide).encode(
            text=alt.Text("figure:N")
        ),
    ).properties(height=alt.Step(cell_px))
    return Chart(drawing, table, description, columns, selects)
