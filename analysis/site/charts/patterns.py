"""Maps: a cell with a figure for each row and column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.site.charts.theme import Chart, Select

CELL_PX: Final = 20
"""Height of a cell."""
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
    cell_px: int = CELL_PX,
) -> Chart:
    """A cell for each row of `table`, with its `figure` if the cells are wide enough for it."""
    base = alt.Chart().encode(x=x, y=y)
    cells = table[str(x.shorthand).partition(":")[0]].nunique()
    is_wide = alt.ExprRef(f"width < {FIGURE_PX * cells} ? 0 : 1")
    drawing = alt.layer(
        base.mark_rect().encode(color=colour, opacity=opacity),
        base.mark_text(fontSize=10, color="white", lineBreak="\n", opacity=is_wide).encode(
            text="figure:N"
        ),
    ).properties(height=alt.Step(cell_px))
    return Chart(drawing, table, description, columns, selects)


def worse_to_better(worst: float, even: float, best: float) -> alt.Scale:
    """Colours of cells, from red over grey to green, that go with either palette."""
    ends = {worst: "#b03a3a", even: "#7b8089", best: "#0a7f65"}
    domain = sorted(ends)
    return alt.Scale(type="log", domain=domain, range=[ends[at] for at in domain], clamp=True)


def two_digits(value: float) -> str:
    """A ratio in two digits: 0.12, 1.2, 12."""
    decimals = 2 if value < 0.995 else 1 if value < 9.95 else 0
    return f"{value:.{decimals}f}"
