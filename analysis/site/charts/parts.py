"""The parts of a time: the metrics of a study that are part of another, stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from analysis.site.charts.rows import MARK_PX, row_chart
from analysis.site.charts.theme import Chart, colour, faded_if_stale, present
from analysis.site.facts.addresses import samples_addresses
from analysis.site.facts.study_facts import StudyFacts

PART_COLUMNS = [
    *("machine", "variant", "name", "role", "case", "part", "order"),
    *("seconds", "whole", "share", "percent", "state", "href"),
]


def part_rows(facts: StudyFacts) -> pd.DataFrame:
    """A row a machine, variant, case and part that was measured, in PART_COLUMNS.

    `seconds` are the part's, `whole` those of all parts together, `share` the one over the other.
    """
    parts = [metric for metric in facts.study.metrics.values() if metric.part_of]
    orders = {metric.name: order for order, metric in enumerate(parts)}
    variants = {variant.name: variant for variant in facts.study.subjects}
    pairs = [(name, case.id) for name, one in variants.items() for case in one.cases]
    rows = facts.summary
    rows = rows[rows["metric"].isin(orders)]
    keys = zip(rows["variant"], rows["case"], strict=True)
    rows = rows.loc[np.array([key in pairs for key in keys], dtype=bool)]
    rows = rows.assign(
        seconds=rows["median"],
        whole=rows.groupby(["machine", "variant", "case"])["median"].transform("sum"),
        order=rows["metric"].map(orders),
        part=rows["metric"].map({metric.name: metric.label for metric in parts}),
        name=[variants[name].title for name in rows["variant"]],
        role=[variants[name].role for name in rows["variant"]],
        state=rows["stale"].map({0: "measured", 1: "stale"}),
        href=samples_addresses(rows),
    )
    rows = rows[rows["whole"] > 0]
    rows = rows.assign(share=rows["seconds"] / rows["whole"])
    rows = rows.assign(percent=[f"{100 * share:.1f} %" for share in rows["share"]])
    place = [pairs.index(key) for key in zip(rows["variant"], rows["case"], strict=True)]
    return rows.assign(place=place).sort_values(["place", "machine", "order"])[PART_COLUMNS]


def part_chart(
    facts: StudyFacts,
    rows: pd.DataFrame,
    x: alt.X,
    description: str,
    columns: Mapping[str, str],
    *,
    row: str = "variant",
    order: Sequence[str] = (),
    name: str = "name",
    figure: str = "",
) -> Chart | None:
    """A stacked bar for each `row`, as `row_chart` has it, each part in the colour that it has in
    every chart of the study. None without rows."""
    if rows.empty:
        return None
    labels = [metric.label for metric in facts.study.metrics.values() if metric.part_of]
    legend = alt.Legend(title=None, values=present(labels, rows["part"]))
    bars = alt.Chart().mark_bar(height=11, yOffset=MARK_PX)
    bars = bars.encode(
        x=x, color=colour("part", labels, legend), order="order:Q", opacity=faded_if_stale()
    )
    drawing = row_chart(row, order or facts.study.variant_names, bars, name=name, figure=figure)
    return Chart(drawing, rows, description, {"part": "part", **columns, "percent": "share"})
