"""Measured times against the link model's: how much longer than predicted, over the rate."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.base.quantities import digits, quantity, signed_percent
from analysis.results.model.judge import JUDGED_WITHIN, LINK, USES
from analysis.results.model.terms import TERMS
from analysis.site.charts.theme import Chart, finish, panels, present, select, text_tooltip
from analysis.site.facts.addresses import samples_addresses
from analysis.site.facts.study_facts import StudyFacts

HEIGHT_PX = 280


def model_chart(facts: StudyFacts) -> Chart | None:
    """A panel a machine, a point a variant and case; None where nothing is predicted."""
    table = facts.predictions
    if table.empty:
        return None
    machines = sorted(set(table["machine"]))
    variants = present(facts.study.variant_names, table["variant"])
    within = max(JUDGED_WITHIN.get(term, 0) for term in (LINK, *table["binding"]))
    ends = pd.DataFrame({"low": [-within], "high": [within]})
    band = alt.Chart(ends).mark_rect(style="band").encode(y=alt.Y("low:Q", title=None), y2="high:Q")
    chart: Any = panels(
        alt.layer(band, _points(table), height=HEIGHT_PX),
        _with_labels(table, facts),
        select("variant_shown", "variant", [None, *variants], None),
        filters=["variant_shown === null || datum.variant === variant_shown"],
    )
    description = (
        f"{facts.study.title}: measured time relative to the link model's, over the predicted rate,"
        f" for {len(machines)} machines."
    )
    return finish(chart, description, margin=80, compact_margin=70)


def _points(table: pd.DataFrame) -> alt.Chart:
    """A point a variant and case, in the colour of what binds it."""
    y = alt.Y(
        "residual:Q",
        title="measured vs. predicted",
        axis=alt.Axis(format="+.0%"),
        scale=alt.Scale(zero=True),
    )
    points: alt.Chart = (
        alt.Chart()
        .mark_point(size=45, cursor="pointer")
        .encode(
            x=_along(),
            y=y,
            color=alt.Color(
                "binding:N",
                scale=alt.Scale(domain=list(TERMS)),
                legend=alt.Legend(orient="top", title="bound by"),
            ),
            shape=alt.Shape(
                "use:N",
                scale=alt.Scale(
                    domain=list(USES),
                    range=["circle", "triangle-up", "square", "diamond"],
                ),
                legend=alt.Legend(
                    orient="top",
                    title=None,
                    values=sorted(set(table["use"])),
                ),
            ),
            opacity=alt.condition("datum.judged === 1", alt.value(1), alt.value(0.4)),
            tooltip=text_tooltip(
                *("variant", "case", "machine", ("binding", "bound by")),
                *(("times", "ratio to the next term"), ("limit", "predicted")),
                *(("time", "measured"), ("difference", "measured vs. predicted"), "use"),
            ),
            href="href:N",
        )
    )
    return points


def _along() -> alt.X:
    """The predicted rate; logarithmic, since steps may be orders of magnitude apart."""
    return alt.X(
        "rate:Q",
        title="predicted payload rate, GB/s",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(labelOverlap="greedy", format="~g"),
    )


def _with_labels(table: pd.DataFrame, facts: StudyFacts) -> pd.DataFrame:
    """`table` with the rate in GB/s and what tooltips write."""
    measured = zip(table["variant"], table["case"], strict=True)
    return table.drop(columns=["judged", "use"]).assign(
        rate=[facts.study.payloads[pair] for pair in measured] / table["predicted"] / 1e9,
        judged=table["judged"].astype(int),
        use=table["use"],
        times=table["margin"].map(digits),
        limit=[quantity(value, "s") for value in table["predicted"]],
        time=[quantity(value, "s") for value in table["measured"]],
        difference=table["residual"].map(signed_percent),
        href=samples_addresses(table),
    )
