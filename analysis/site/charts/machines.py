"""Machines against each other: a row a variant, the ratio of two machines' speeds, those that
differ most first."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.base.quantities import INTERVAL, ratio, ratio_interval, speed
from analysis.site.charts.rows import MARK_PX, row_chart
from analysis.site.charts.theme import Chart, Select, colour, log_scale
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.comparison import EQUAL, FASTER, SLOWER, UNCLEAR, Comparison, Ratio

VERDICTS: Final = [FASTER, SLOWER, EQUAL, UNCLEAR]
TITLE: Final = "times as fast as the other"


def machines_chart(comparison: Comparison) -> Chart | None:
    """Every machine against all it can be held against, one study at a time; None where there is
    nothing."""
    ratios = [
        one
        for base in comparison.machines
        for other in comparison.others(base)
        for one in comparison.ratios(base, other)
    ]
    ranked = sorted(ratios, key=lambda one: one.rank, reverse=True)
    if not ranked:
        return None
    table = pd.DataFrame([_row(comparison, one) for one in ranked])
    x = alt.X("ratio:Q", title=TITLE, scale=log_scale(), axis=alt.Axis(format="~g"))
    ratio_marks = alt.Chart().encode(x=x, color=colour("verdict", VERDICTS, alt.Legend(title=None)))
    even = alt.Chart(pd.DataFrame({"one": [1]})).mark_rule(style="limit", strokeDash=[4, 3])
    drawing = row_chart(
        "row",
        [*dict.fromkeys(table["row"])],
        ratio_marks.mark_rule(strokeWidth=1.4, yOffset=MARK_PX).encode(
            x="ratio_low:Q", x2="ratio_high:Q"
        ),
        ratio_marks.mark_point(filled=True, size=45, yOffset=MARK_PX, opacity=1),
        figure="label",
        through=[even.encode(x="one:Q")],
    )
    columns = {
        "variant": "variant",
        "case": "case",
        "clock": "by",
        "figure": "its figure",
        "other": "the other figure",
        "label": "ratio",
        "interval": INTERVAL,
        "verdict": "verdict",
    }
    description = (
        "Speed of each variant on one machine relative to another, the largest certain difference"
        " first."
    )
    selects = [Select("against", "against"), Select("study", "study")]
    return Chart(drawing, table, description, columns, selects)


def _row(comparison: Comparison, one: Ratio) -> dict[str, object]:
    facts = comparison.studies[one.of.study]
    low, high = one.interval
    shown = facts.study.shown_case(one.of.variant).id
    figure, other = (speed(part.payload_bytes, part.seconds) for part in (one.of, one.against))
    variant = one.of.variant
    return {
        "machine": one.base.name,
        "against": comparison.inputs.machine_names.get(one.other.name, one.other.name),
        "study": one.of.study,
        "variant": variant.name,
        "row": variant.title + ("" if one.of.case == shown else f", {one.of.case}"),
        "case": one.of.case,
        "clock": facts.study.metrics[one.of.metric].label,
        "verdict": one.verdict,
        "ratio": one.value,
        "ratio_low": low,
        "ratio_high": high,
        "label": ratio(one.value),
        "interval": ratio_interval(low, high),
        "figure": figure,
        "other": other,
        "href": samples_address(
            one.base.name, one.of.study, variant.name, one.of.case, one.of.metric
        ),
    }
