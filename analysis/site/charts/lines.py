"""Lines over a quantity, a panel a machine: what the charts of several studies share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, Literal

import altair as alt
import pandas as pd

from analysis.results.model.judge import PREDICTED
from analysis.site.charts.intervals import within_reach
from analysis.site.charts.theme import Chart, finish, panels, tooltip
from analysis.site.facts.study_facts import StudyFacts

HEIGHT_PX: Final = 300


def line_panels(
    facts: StudyFacts,
    rows: pd.DataFrame,
    base: Any,
    description: str,
    *selects: alt.Parameter,
    with_intervals: bool = False,
    beneath: Sequence[alt.Chart] = (),
) -> Chart:
    """`base`, which says what lies along the axes, as lines with a point for each of `rows`.

    Points lead to their samples, and those that are stale are crosses. Rows whose state is
    PREDICTED are a dashed line without points. `selects` are those of `panels`, whose filters are
    in `base`. `with_intervals` draws the rates' intervals, too, by `within_reach`.
    What is `beneath` is drawn first, from the same rows.
    """
    measured = base.transform_filter(f"datum.state !== '{PREDICTED}'")
    points = measured.mark_point(filled=True, size=45, cursor="pointer").encode(
        shape=stale_shape(), href="href:N", tooltip=tooltip(facts)
    )
    layers = [measured.mark_line(strokeWidth=1.2), points]
    if (rows["state"] == PREDICTED).any():
        predicted = base.transform_filter(f"datum.state === '{PREDICTED}'")
        layers.insert(0, predicted.mark_line(strokeWidth=1.2, strokeDash=[4, 3]))
    if with_intervals:
        reaching = within_reach(measured, "rate")
        layers.append(reaching.mark_rule().encode(y="begin:Q", y2="reach:Q"))
    chart = panels(alt.layer(*beneath, *layers, height=HEIGHT_PX), rows, *selects)
    return finish(chart, description, margin=70, compact_margin=60)


def line_colour(
    field: str, names: Sequence[str], title: str | None, drawn: Collection[str] | None = None
) -> alt.Color:
    """A colour for each of `names`, in their order; the legend has those that are `drawn`, or all.
    So charts that share their `names` share the colours, too."""
    values = names if drawn is None else [name for name in names if name in drawn]
    legend = alt.Legend(orient="top", title=title, values=values)
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=names), sort=names, legend=legend)


def dash_legend(orient: Literal["top", "bottom"], title: str | None = None) -> alt.Legend:
    """A legend of strokes: in the points of the lines, as symbols, no dash would be seen."""
    return alt.Legend(
        orient=orient,
        title=title,
        symbolType="stroke",
        symbolSize=300,
        symbolFillColor="transparent",  # what has no fill at all is drawn without a stroke too
    )


def stale_shape() -> Any:
    """A cross where a point is stale, else a circle."""
    return alt.condition("datum.state === 'stale'", alt.value("cross"), alt.value("circle"))
