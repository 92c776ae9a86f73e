"""Chart of this study: speed-up by sharding over the rate of increments."""

from __future__ import annotations

import altair as alt

from analysis.api.charts import Chart, StudyFacts, even_rule, line_chart, log_scale
from analysis.api.quantities import ratio

SHARED, PADDED = "shared_atomic", "sharded_padded"


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`rate`: speed-up of padded counters over a shared one, a line for each number of threads.

    The x axis is the rate of all threads with padded counters, which only the work limits.
    """
    points = facts.points
    keys = ["machine", "case_threads", "case_work"]
    table = points.pivot_table(index=keys, columns="variant", values="seconds")
    table = table.reindex(columns=[SHARED, PADDED]).dropna().reset_index()
    gain = table[SHARED] / table[PADDED]
    table = table.assign(
        gain=gain,
        gained=gain.map(ratio),
        rate=table["case_threads"] / table[PADDED],
        threads=table["case_threads"].map("{:.0f} threads".format),
    )
    x = alt.X("rate:Q", title="increments of all threads per second", scale=log_scale())
    chart = line_chart(
        table,
        x.axis(alt.Axis(format="~s")),
        alt.Y("gain:Q", title="padded over shared", scale=log_scale()),
        "threads",
        list(dict.fromkeys(table.sort_values("case_threads")["threads"])),
        "speed-up by padding over increments per second.",
        {"threads": "threads", "case_work": "work", "gained": "gain"},
        max_gap=20,
        beneath=[even_rule("y")],
    )
    return {"rate": chart}
