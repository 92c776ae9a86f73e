"""Two entries that are one program: what the method says of differences that cannot be there."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.base.quantities import INTERVAL, ratio, ratio_interval
from analysis.base.statistics import SAME_WITHIN
from analysis.site.charts.lines import line_colour
from analysis.site.charts.rows import finish_rows, named, named_rows
from analysis.site.charts.theme import Chart, panels, present, select, text_tooltip
from analysis.site.facts.addresses import samples_addresses
from analysis.site.facts.study_facts import StudyFacts

ROW_PX = 13
CALLED = {"same": "same", "faster": "different", "slower": "different", "unclear": "unclear"}


def agreement_chart(facts: StudyFacts) -> Chart | None:
    """Ratios between repeats of one program in this study; None where there are none."""
    table = facts.repeats
    if table.empty:
        return None
    table["clock"] = [facts.study.metrics[metric].label for metric in table["metric"]]
    table["called"] = table["verdict"].map(CALLED)
    table["short"] = table["ratio"].map(ratio)
    table["interval"] = [
        ratio_interval(*ends) for ends in table[["ci_low", "ci_high"]].to_numpy(dtype=float)
    ]
    table["href"] = samples_addresses(table)
    clocks = list(dict.fromkeys(table["clock"]))
    cases = dict.fromkeys(case.id for variant in facts.study.variants for case in variant.cases)
    order = present(cases, table["case"])
    row = named_rows("case", order)
    base = alt.Chart().encode(
        y=row,
        color=line_colour("called", ["same", "different", "unclear"], None),
        tooltip=text_tooltip(
            *("variant", "against", "case", "clock", "machine"),
            *(("short", "ratio"), ("interval", INTERVAL), ("verdict", "called")),
        ),
        href="href:N",
    )
    scale = alt.Scale(zero=False)
    band = alt.Chart(pd.DataFrame({"low": [1 - SAME_WITHIN], "high": [1 + SAME_WITHIN]}))
    chart: Any = panels(
        named(
            row,
            band.mark_rect(style="band").encode(x=alt.X("low:Q", scale=scale), x2="high:Q"),
            base.mark_rule(strokeWidth=1.5).encode(
                x=alt.X("ci_low:Q", scale=scale, title="ratio of times"), x2="ci_high:Q"
            ),
            base.mark_point(filled=True, size=40, cursor="pointer").encode(
                x=alt.X("ratio:Q", scale=scale)
            ),
            row_px=ROW_PX,
        ),
        table,
        select("clock_shown", "clock", clocks, clocks[0]),
        filters=["datum.clock === clock_shown"],
    )
    description = (
        f"{facts.study.title}: ratios of times between two entries of one program, each with its"
        f" {INTERVAL}; the correct ratio is 1."
    )
    return finish_rows(chart, description, margin=220)
