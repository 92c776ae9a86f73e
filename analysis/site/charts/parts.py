"""The parts of a time: the metrics of a study that are part of another, stacked."""

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from analysis.base.quantities import quantity
from analysis.site.charts.rows import MARK_PX, row_chart
from analysis.site.charts.theme import Chart, Select, colour, faded_if_stale, present
from analysis.site.facts.addresses import samples_addresses
from analysis.site.facts.study_facts import StudyFacts

PART_WORDS = {
    **{name: name for name in ("part", "variant", "time")},
    "all_parts": "all parts",
    "percent": "share",
    "state": "state",
}
"""Columns of the tooltip."""


def part_rows(facts: StudyFacts) -> pd.DataFrame:
    """A row a machine, variant, case and part that was measured.

    `seconds` are the part's, `whole` those of all parts together, `share` the one over the other.
    """
    parts = {name: one.label for name, one in facts.study.metrics.items() if one.part_of}
    order = {name: place for place, name in enumerate(parts)}
    variants = {variant.name: variant for variant in facts.study.subjects}
    pairs = [(name, case.id) for name, one in variants.items() for case in one.cases]
    places = pd.Series(range(len(pairs)), pd.MultiIndex.from_tuples(pairs), name="place")
    rows = facts.summary[facts.summary["metric"].isin(order)]
    rows = rows.join(places, on=["variant", "case"], how="inner")
    whole = rows.groupby(["machine", "variant", "case"])["median"].transform("sum")
    rows, whole = rows[whole > 0], whole[whole > 0]
    share = rows["median"] / whole
    rows = rows.assign(
        seconds=rows["median"],
        whole=whole,
        share=share,
        time=[quantity(one, "s") for one in rows["median"]],
        all_parts=[quantity(one, "s") for one in whole],
        percent=[f"{100 * one:.1f} %" for one in share],
        order=rows["metric"].map(order),
        part=rows["metric"].map(parts),
        name=[variants[name].title for name in rows["variant"]],
        role=[variants[name].role for name in rows["variant"]],
        state=rows["stale"].map({0: "measured", 1: "stale"}),
        href=samples_addresses(rows),
    )
    return rows.sort_values(["place", "machine", "order"])


def part_chart(
    facts: StudyFacts,
    rows: pd.DataFrame,
    x: alt.X,
    description: str,
    columns: Mapping[str, str] = PART_WORDS,
    selects: Sequence[Select] = (),
    *,
    row: str = "variant",
    order: Sequence[str] = (),
    name: str = "name",
    figure: str = "all_parts",
) -> Chart | None:
    """A stacked bar for each `row`, as `row_chart` has it, each part in the colour that it has in
    every chart of the study. None without rows."""
    if rows.empty:
        return None
    labels = [metric.label for metric in facts.study.metrics.values() if metric.part_of]
    legend = alt.Legend(title=None, values=present(labels, rows["part"]))
    bars = alt.Chart().mark_bar(height=11, yOffset=MARK_PX)
    bars = bars.encode(
        x=x.stack("zero"),
        color=colour("part", labels, legend),
        order=alt.Order("order:Q"),
        opacity=faded_if_stale(),
    )
    drawing = row_chart(row, order or facts.study.variant_names, bars, name=name, figure=figure)
    return Chart(drawing, rows, description, columns, selects)
