"""Machines against each other: a row a variant, the ratio of two machines' speeds, those that
differ most first."""

from __future__ import annotations

from itertools import permutations
from typing import Final

import altair as alt
import pandas as pd

from analysis.base.quantities import INTERVAL, ratio, ratio_interval, speed
from analysis.site.charts.rows import MARK_PX, row_chart
from analysis.site.charts.theme import Chart, Select, log_scale
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.comparison import EQUAL, FASTER, SLOWER, UNCLEAR, Comparison, Ratio

COLOURS: Final = {
    FASTER: "light-dark(#0a8f72,#3cc4a0)",
    SLOWER: "light-dark(#c0660c,#f0a04b)",
    EQUAL: "light-dark(#1f6fb2,#5aa9e6)",
    UNCLEAR: "light-dark(#6b7280,#a3acb9)",
}
"""Of verdicts; what decides nothing is grey."""
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


def machines_chart(comparison: Comparison) -> Chart | None:
    """Every machine against all it can be held against, one study at a time; None where there is
    nothing."""
    pairs = permutations(comparison.machines, 2)
    ratios = [one for pair in pairs for one in comparison.ratios(*pair)]
    if not ratios:
        return None
    ranked = sorted(ratios, key=lambda one: one.rank, reverse=True)
    table = pd.DataFrame([_row(comparison, one) for one in ranked])
    x = alt.X(
        "ratio:Q", title="times as fast as the other", scale=log_scale(), axis=alt.Axis(format="~g")
    )
    colour = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=[*COLOURS], range=[*COLOURS.values()]),
        legend=alt.Legend(title=None),
    )
    marks = alt.Chart().encode(x=x, color=colour)
    even = alt.Chart(pd.DataFrame({"one": [1]})).mark_rule(style="limit", strokeDash=[4, 3])
    ends = marks.mark_rule(strokeWidth=1.4, yOffset=MARK_PX)
    drawing = row_chart(
        "row",
        [*dict.fromkeys(table["row"])],
        ends.encode(x="ratio_low:Q", x2="ratio_high:Q"),
        marks.mark_point(filled=True, size=45, yOffset=MARK_PX, opacity=1),
        figure="label",
        through=[even.encode(x="one:Q")],
    )
    description = (
        "Speed of each variant on one machine relative to another, the largest certain difference"
        " first."
    )
    selects = [Select("against", "against"), Select("study", "study")]
    return Chart(drawing, table, description, COLUMNS, selects)


def _row(comparison: Comparison, one: Ratio) -> dict[str, object]:
    study = comparison.studies[one.of.study].study
    variant, case = one.of.variant, one.of.case
    low, high = one.interval
    return {
        "machine": one.base.name,
        "against": comparison.called(one.other),
        "study": study.title,
        "variant": variant.name,
        "row": variant.title,
        "case": case,
        "clock": study.metrics[one.of.metric].label,
        "verdict": one.verdict,
        "ratio": one.value,
        "ratio_low": low,
        "ratio_high": high,
        "label": ratio(one.value),
        "interval": ratio_interval(low, high),
        "figure": speed(one.of.payload_bytes, one.of.seconds),
        "other": speed(one.against.payload_bytes, one.against.seconds),
        "href": samples_address(one.base.name, study.name, variant.name, case, one.of.metric),
    }
