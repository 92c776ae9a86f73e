"""Chart of this study: speed-up by sharding over the rate of increments."""

from __future__ import annotations

import altair as alt
import pandas as pd

from analysis.api.charts import Chart, StudyFacts, line_chart, log_scale
from analysis.api.quantities import ratio

SHARED, PADDED = "shared_atomic", "sharded_padded"


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`rate`: speed-up of padded counters over a shared one, a line for each number of threads.

    The x axis is the rate of all threads with padded counters, which only the work limits.
    """
    points = facts.points
    points = points[points["seconds"].notna()]
    keys = ["machine", "case_threads", "case_work"]
    seconds = points.pivot_table(index=keys, columns="variant", values="seconds")
    if not {SHARED, PADDED} <= set(seconds.columns):
        return {"rate": None}
    table = seconds.dropna(subset=[SHARED, PADDED]).reset_index()
    table = table.assign(
        gain=table[SHARED] / table[PADDED],
        gained=(table[SHARED] / table[PADDED]).map(ratio),
        rate=table["case_threads"] / table[PADDED],
        threads=table["case_threads"].map("{:.0f} threads".format),
    )
    names = list(dict.fromkeys(table.sort_values("case_threads")["threads"]))
    axis = alt.Axis(format="~s")
    x = alt.X("rate:Q", title="increments of all threads per second", scale=log_scale(), axis=axis)
    y = alt.Y("gain:Q", title="padded over shared", scale=log_scale())
    even = alt.Chart(pd.DataFrame({"one": [1]})).mark_rule(style="limit", strokeDash=[5, 3])
    drawing, table = line_chart(
        table, x, y, "threads", names, max_gap=20, beneath=[even.encode(y="one:Q")]
    )
    columns = {"threads": "threads", "case_work": "work", "gained": "gain"}
    description = f"{facts.study.title}: speed-up by padding over increments per second."
    return {"rate": Chart(drawing, table, description, columns)}
