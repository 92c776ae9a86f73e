"""Chart of this study: speed-up by sharding over the rate of increments."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.api.charts import StudyFacts, finish, panels

SHARED, PADDED = "shared_atomic", "sharded_padded"


def charts(facts: StudyFacts) -> dict[str, Any]:
    """`rate`: speed-up of padded counters over a shared one, one point per threads and work.

    The x axis is the rate of all threads with padded counters, which only the work limits.
    """
    points = facts.points
    points = points[points["seconds"].notna()]
    keys = ["machine", "case_threads", "case_work"]
    seconds = points.pivot_table(index=keys, columns="variant", values="seconds")
    if not {SHARED, PADDED} <= set(seconds.columns):
        return {"rate": None}
    table = seconds.dropna(subset=[SHARED, PADDED]).reset_index()
    table["gain"] = table[SHARED] / table[PADDED]
    table["rate"] = table["case_threads"] / table[PADDED]
    table["gained"] = table["gain"].map("{:.3g}".format)
    columns = [*keys, "rate", "gain", "gained"]
    rule = alt.Chart(pd.DataFrame({"gain": [1.0]})).mark_rule(style="ceiling", strokeDash=[5, 3])
    base = alt.Chart().encode(
        x=alt.X(
            "rate:Q",
            title="increments of all threads per second",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(format="~s"),
        ),
        y=alt.Y("gain:Q", title="padded over shared", scale=alt.Scale(type="log")),
        color=alt.Color("case_threads:O", title="threads", legend=alt.Legend(orient="top")),
        tooltip=[
            alt.Tooltip("machine:N"),
            alt.Tooltip("case_threads:Q", title="threads"),
            alt.Tooltip("case_work:Q", title="work"),
            alt.Tooltip("rate:Q", title="increments per second", format=".3s"),
            alt.Tooltip("gained:N", title="gain"),
        ],
    )
    chart = panels(
        alt.layer(
            rule.encode(y=alt.Y("gain:Q", scale=alt.Scale(type="log"))),
            base.mark_line(strokeWidth=1),
            base.mark_point(filled=True, size=55),
        ).properties(height=300),
        table[columns],
    )
    description = f"{facts.study.title}: speed-up by padding over increments per second."
    return {"rate": finish(chart, description, margin=70, compact_margin=60)}
