"""Machines against each other: a row a variant, the ratio of two machines' speeds, those that
differ most first."""

from collections.abc import Collection
from itertools import permutations
from typing import Final

import altair as alt
import pandas as pd

from analysis.base.quantities import INTERVAL, ratio, ratio_interval, speed
from analysis.site.charts.rows import MARK_PX, row_chart
from analysis.site.charts.theme import Chart, Select, log_scale
from analysis.site.facts.addresses import samples_addresses
from analysis.site.facts.comparison import EQUAL, FASTER, SLOWER, UNCLEAR, machine_ratios
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts

COLOURS: Final = {
    FASTER: "light-dark(#0a8f72,#3cc4a0)",
    SLOWER: "light-dark(#c0660c,#f0a04b)",
    EQUAL: "light-dark(#1f6fb2,#5aa9e6)",
    UNCLEAR: "light-dark(#6b7280,#a3acb9)",
}
"""Of verdicts; what decides nothing is grey."""
ALL: Final = "all studies"
MOST_DIFFERENT: Final = 12
TICKS: Final = [1 / 8, 1 / 4, 1 / 2, 0.7, 1, 1.4, 2, 4, 8]
COLUMNS: Final = {
    "variant": "variant",
    "case": "case",
    "clock": "by",
    "figure": "its figure",
    "other": "the other figure",
    "label": "ratio",
    "interval": INTERVAL,
    "verdict": "verdict",
}


def machines_chart(inputs: Inputs, studies: Collection[StudyFacts]) -> Chart | None:
    """Every machine against all it can be held against: the MOST_DIFFERENT variants of all studies,
    or one study at a time; None where there is nothing."""
    table = machine_ratios(studies, permutations(sorted(inputs.machines), 2))
    if table.empty:
        return None
    titles = {facts.study.name: facts.study.title for facts in studies}
    table = table.assign(
        row=table["title"] + " · " + table["study"].map(titles),
        href=samples_addresses(table),
        study=table["study"].map(titles),
        against=table["against"].map(inputs.called),
        label=table["ratio"].map(ratio),
        interval=[*map(ratio_interval, table["low"], table["high"])],
        figure=[*map(speed, table["payload_bytes"], table["seconds"])],
        other=[*map(speed, table["payload_bytes"], table["other_seconds"])],
    )
    first = table.groupby(["machine", "against"]).head(MOST_DIFFERENT)
    table = pd.concat([first.assign(study=ALL), table], ignore_index=True)
    title, axis = "times as fast as the other", alt.Axis(format="~g", values=TICKS)
    x = alt.X("ratio:Q", title=title, scale=log_scale(), axis=axis)
    colour = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=[*COLOURS], range=[*COLOURS.values()]),
        legend=alt.Legend(title=None),
    )
    marks = alt.Chart().encode(x=x, color=colour)
    # A line through all rows would cross the names of variants.
    even = alt.Chart().mark_tick(style="limit", height=14, yOffset=MARK_PX)
    drawing = row_chart(
        "row",
        [*dict.fromkeys(table["row"])],
        even.encode(x=alt.XDatum(1)),
        marks.mark_rule(strokeWidth=1.4, yOffset=MARK_PX).encode(alt.X("low:Q"), alt.X2("high:Q")),
        marks.mark_point(filled=True, size=45, yOffset=MARK_PX, opacity=1),
        figure="label",
    )
    description = "Speed of each variant on one machine relative to another, differences first."
    selects = [Select("against", "against"), Select("study", "study", ALL)]
    return Chart(drawing, table, description, COLUMNS, selects)
