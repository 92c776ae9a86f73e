"""Chart of this study: what the method says of differences that cannot be there."""

from __future__ import annotations

from typing import Final

import altair as alt

from analysis.api.charts import Chart, Select, StudyFacts, band, dot_chart, samples_addresses
from analysis.api.quantities import INTERVAL, SAME_WITHIN, ratio, ratio_interval

CALLED: Final = {
    "same": "same",
    "faster": "different",
    "slower": "different",
    "unclear": "undecided",
}


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`agreement`: ratios between repeats of one program in this study."""
    table = facts.table("repeats")
    table = table.assign(
        clock=[facts.study.metrics[metric].label for metric in table["metric"]],
        called=table["verdict"].map(CALLED),
        short=table["ratio"].map(ratio),
        interval=[*map(ratio_interval, table["ci_low"], table["ci_high"])],
        href=samples_addresses(table),
    )
    cases = (case.id for variant in facts.study.variants for case in variant.cases)
    chart = dot_chart(
        table,
        alt.X("ratio:Q", title="ratio of times", scale=alt.Scale(zero=False)),
        "case",
        list(dict.fromkeys(cases)),
        "ratios of times between two entries of one program, each with its"
        f" {INTERVAL}; the correct ratio is 1.",
        {
            **{name: name for name in ("variant", "against", "case", "clock")},
            "short": "ratio",
            "interval": INTERVAL,
            "verdict": "called",
        },
        [Select("clock", "clock")],
        by="called",
        names=list(dict.fromkeys(CALLED.values())),
        interval=("ci_low", "ci_high"),
        through=[band("x", 1 - SAME_WITHIN, 1 + SAME_WITHIN)],
    )
    return {"agreement": chart}
