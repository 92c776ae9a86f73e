"""The parts of a time: the metrics of a study that are part of another, stacked."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from analysis.site.charts.theme import present, text_tooltip
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.study_facts import StudyFacts

PART_COLUMNS = [
    *("machine", "variant", "role", "case", "part", "order"),
    *("seconds", "whole", "share", "state", "href"),
]


def part_rows(facts: StudyFacts) -> pd.DataFrame:
    """A row a machine, variant, case and part that was measured, in PART_COLUMNS.

    `seconds` are the part's, `whole` those of all parts together, `share` the one over the other.
    """
    parts = [metric for metric in facts.study.metrics.values() if metric.part_of]
    rows = []
    for variant in facts.study.subjects:
        for case in variant.cases:
            for machine in facts.machines:
                key = (machine, variant.name, case.id)
                found = [
                    (part, row)
                    for part in parts
                    if (row := facts.figures.find(*key, part.name)) is not None
                ]
                whole = sum(row.median for _, row in found)
                if whole == 0:
                    continue
                for order, (part, row) in enumerate(found):
                    href = samples_address(
                        machine, facts.study.name, variant.name, case.id, part.name
                    )
                    place = (machine, variant.name, variant.role, case.id, part.label, order)
                    shares = (row.median, whole, row.median / whole)
                    rows.append((*place, *shares, "stale" if row.stale else "measured", href))
    return pd.DataFrame(rows, columns=PART_COLUMNS)


def part_bars(
    facts: StudyFacts, rows: pd.DataFrame, along: alt.X, row: alt.Y, tips: Mapping[str, str]
) -> alt.Chart:
    """A stacked bar a `row` of `rows`, each part in the colour it has in every chart of the study;
    `tips` are the columns shown of a bar that is pointed at, and what they are called."""
    labels = [metric.label for metric in facts.study.metrics.values() if metric.part_of]
    drawn = present(labels, rows["part"])
    legend = alt.Legend(orient="top", title=None, symbolType="square", values=drawn)
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
                *text_tooltip(*tips.items()),
                alt.Tooltip("share:Q", title="share", format=".1%"),
            ],
        )
    )
    return bars
