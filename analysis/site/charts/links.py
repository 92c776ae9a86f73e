"""Predicted rates by link, for hardware that has not been measured here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import pandas as pd

from analysis.base.quantities import digits
from analysis.site.charts.rows import MARK_PX, row_chart
from analysis.site.charts.theme import Chart, Select, colour, log_scale
from analysis.site.facts.links import LinkRate

KINDS: Final = ("predicted, not measured", "if only the link limited", "measured")


def links_chart(rates: Sequence[LinkRate]) -> Chart | None:
    """A row a variant, for one study and link; None where nothing is predicted."""
    rows = [
        {
            "link": one.link.title,
            "study": one.study,
            "variant": one.variant.name,
            "title": one.variant.title,
            "case": one.case,
            "kind": kind,
            "rate": rate / 1e9,
            "label": f"{digits(one.rate / 1e9)} by {one.binding}",
        }
        for one in rates
        for kind, rate in zip(KINDS, (one.rate, one.link_rate, one.measured), strict=True)
        if rate == rate
    ]
    if not rows:
        return None
    table = pd.DataFrame(rows)
    shapes = alt.Scale(domain=list(KINDS), range=["circle", "stroke", "diamond"])
    shape = alt.Shape("kind:N", scale=shapes, legend=alt.Legend(title=None))
    marks = alt.Chart().mark_point(size=60, strokeWidth=1.6, yOffset=MARK_PX)
    marks = marks.encode(
        x=alt.X(
            "rate:Q", title="payload rate, GB/s", scale=log_scale(), axis=alt.Axis(format="~g")
        ),
        shape=shape,
        color=colour("kind", KINDS, alt.Legend(title=None)),
    )
    order = [*dict.fromkeys(table["variant"])]
    columns = {"variant": "variant", "case": "case", "kind": "kind", "label": "predicted"}
    description = "Predicted payload rates over links, most of which are not measured."
    return Chart(
        row_chart("variant", order, marks, name="title", figure="label"),
        table,
        description,
        columns,
        [Select("study", "study"), Select("link", "link")],
    )
