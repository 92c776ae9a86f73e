"""Predicted rates by link, for hardware that has not been measured here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import pandas as pd

from analysis.base.quantities import digits
from analysis.site.charts.theme import WIDE_LABELS, Chart, finish, select, text_tooltip
from analysis.site.facts.links import LinkRate

ROW_PX: Final = 22
COLUMNS: Final = [
    *("link", "study", "variant", "title", "case", "rate", "alone", "measured", "binding", "label"),
]
PREDICTED: Final = "predicted, not measured"
ALONE: Final = "if only the link limited"
MEASURED: Final = "measured"


def links_chart(rates: Sequence[LinkRate]) -> Chart | None:
    """A row a variant and link, in a panel a link; None where nothing is predicted."""
    if not rates:
        return None
    table = pd.DataFrame([_row(one) for one in rates], columns=COLUMNS)
    studies, links = (list(dict.fromkeys(table[name])) for name in ("study", "link"))
    axis = alt.Axis(labelFont=WIDE_LABELS, labelLimit=190, domain=False, ticks=False, grid=False)
    base = alt.Chart().encode(
        y=alt.Y("variant:N", sort=list(dict.fromkeys(table["variant"])), title=None, axis=axis),
        tooltip=text_tooltip(
            ("title", "what"), "link", "case", ("label", "predicted"), ("binding", "limited by")
        ),
    )
    shape = alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=[PREDICTED, ALONE, MEASURED], range=["circle", "stroke", "diamond"]),
        legend=alt.Legend(orient="top", title=None),
    )
    title = "payload rate, GB/s"
    along = alt.X(
        "value:Q",
        title=title,
        scale=alt.Scale(type="log", nice=False, padding=10),
        axis=alt.Axis(format="~g", labelOverlap="greedy"),
    )
    points = (
        base.transform_calculate(p=f"'{PREDICTED}'")
        .transform_fold(["rate", "alone", "measured"], as_=["of", "value"])
        .transform_filter("isValid(datum.value)")
        .transform_calculate(
            kind=f"datum.of === 'rate' ? '{PREDICTED}'"
            f" : datum.of === 'alone' ? '{ALONE}' : '{MEASURED}'"
        )
        .mark_point(size=60, strokeWidth=1.6)
        .encode(x=along, shape=shape, color=alt.Color("kind:N", legend=None, sort=[PREDICTED]))
    )
    text = {"expr": "compact ? split(datum.label, ' ')[0] : datum.label"}
    figures = base.mark_text(align="left", dx=10, text=text).encode(x=alt.value("width"))
    chart = (
        alt.layer(points, figures)
        .properties(height=alt.Step(ROW_PX))
        .facet(
            facet=alt.Facet("link:N", sort=links, title=None),
            columns=1,
            data=table,
        )
        .add_params(
            select("study_shown", "study", studies, studies[0]),
            select("link_shown", "link", [None, *links], None),
        )
        .transform_filter("datum.study === study_shown")
        .transform_filter("link_shown === null || datum.link === link_shown")
    )
    description = f"Predicted payload rates over {len(links)} links, which are not measured."
    return finish(chart, description, margin=300, compact_margin=250)


def _row(one: LinkRate) -> tuple[object, ...]:
    rates = [rate / 1e9 for rate in (one.rate, one.link_rate, one.measured)]
    return (
        *(one.link.title, one.study, one.variant.name, one.variant.title, one.case),
        *rates,
        *(one.binding, f"{digits(rates[0])} by {one.binding}"),
    )
