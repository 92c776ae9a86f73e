"""The parts of a time: the metrics of a study that are part of another, stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from analysis.site.charts.rows import MARK_PX, row_chart
from analysis.site.charts.theme import Chart, colour, faded_if_stale, present
from analysis.site.facts.addresses import samples_address
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
                    share = row.median / whole
                    href = samples_address(
                        machine, facts.study.name, variant.name, case.id, part.name
                    )
                    place = (machine, variant.name, variant.title, variant.role, case.id)
                    shares = (row.median, whole, share, f"{100 * share:.1f} %")
                    state = "stale" if row.stale else "measured"
                    rows.append((*place, part.label, order, *shares, state, href))
    return pd.DataFrame(rows, columns=PART_COLUMNS)


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
