"""What a time is made of: the metrics of a study that are part of another, stacked."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from analysis.facts.points import Context, anchor

PART_COLUMNS = [
    *("machine", "variant", "role", "case", "part", "order"),
    *("seconds", "whole", "share", "state", "href"),
]


def part_rows(context: Context) -> pd.DataFrame:
    """A row a machine, variant, case and part that was measured, in PART_COLUMNS.

    `seconds` are the part's, `whole` those of all parts together, `share` the one over the other.
    """
    parts = [metric for metric in context.study.metrics.values() if metric.part_of]
    rows = []
    for variant in context.study.variants:
        for case in variant.cases:
            for machine in context.machines:
                key = (machine, variant.name, case.id)
                found = {
                    part: row
                    for part in parts
                    if (row := context.summary.get((*key, part.name))) is not None
                }
                whole = sum(float(row["median"]) for row in found.values())
                for order, (part, row) in enumerate(found.items()):
                    seconds = float(row["median"])
                    values = (seconds, whole, seconds / whole)
                    state = "stale" if row["stale"] else "measured"
                    href = f"data/#{anchor(machine, context.study.name, variant.name)}"
                    own = (machine, variant.name, variant.role, case.id, part.label, order)
                    rows.append((*own, *values, state, href))
    return pd.DataFrame(rows, columns=PART_COLUMNS)


def part_bars(
    context: Context, rows: pd.DataFrame, along: alt.X, row: alt.Y, told: Mapping[str, str]
) -> alt.Chart:
    """A stacked bar a `row` of `rows`, each part in the colour it has in every chart of the study;
    `told` are the columns that a bar tells when pointed at, and what they are called."""
    labels = [metric.label for metric in context.study.metrics.values() if metric.part_of]
    columns = {"expr": "compact ? 2 : 4"}
    drawn = [label for label in labels if label in set(rows["part"])]
    legend = alt.Legend(
        orient="top", title=None, symbolType="square", columns=columns, values=drawn
    )
    bars: alt.Chart = (
        alt.Chart()
        .mark_bar(height=15, cursor="pointer")
        .encode(
            x=along,
            y=row,
            color=alt.Color("part:N", sort=labels, scale=alt.Scale(domain=labels), legend=legend),
            order="order:Q",
            href="href:N",
            opacity=alt.condition("datum.state === 'stale'", alt.value(0.35), alt.value(0.9)),
            tooltip=[
                *(alt.Tooltip(f"{name}:N", title=title) for name, title in told.items()),
                alt.Tooltip("share:Q", title="share", format=".1%"),
            ],
        )
    )
    return bars
