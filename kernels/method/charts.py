"""The chart of this study: the cost of a copy whose source is in a core's cache."""

from __future__ import annotations

from typing import Any

import altair as alt

from analysis.api.charts import StudyFacts, finish, panels, si_axis
from analysis.api.quantities import INTERVAL

WRITERS = {
    "copy_from_memory": "nobody",
    "copy_written_here": "the thread that copies",
    "copy_written_elsewhere": "a core that now sleeps",
}


def charts(facts: StudyFacts) -> dict[str, Any]:
    """`cached`: device time over size, one line per writer of the source, one panel per machine."""
    points = facts.points
    points = points[points["variant"].isin(WRITERS) & (points["metric"] == "gpu_time")]
    points = points[points["seconds"].notna()]
    if points.empty:
        return {"cached": None}
    columns = ["machine", "case_bytes", "seconds", "seconds_low", "seconds_high"]
    table = points[[*columns, "label", "interval", "href"]].assign(
        writer=points["variant"].map(WRITERS)
    )
    scale = alt.Scale(type="log", nice=False, padding=12)
    base = alt.Chart().encode(
        x=alt.X(
            "case_bytes:Q",
            title="size",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=alt.Axis(
                values=sorted(set(table["case_bytes"])),
                labelExpr="datum.value / 1024 + ' KiB'",
                labelFlush=True,
                grid=False,
            ),
        ),
        color=alt.Color(
            "writer:N",
            scale=alt.Scale(domain=list(WRITERS.values())),
            legend=alt.Legend(orient="top", title="last written by"),
        ),
        tooltip=[
            alt.Tooltip("machine:N"),
            alt.Tooltip("writer:N", title="last written by"),
            alt.Tooltip("case_bytes:Q", title="size, B", format=",d"),
            alt.Tooltip("label:N", title="figure"),
            alt.Tooltip("interval:N", title=INTERVAL),
        ],
        href="href:N",
    )
    y = alt.Y("seconds:Q", title="time", scale=scale, axis=si_axis("s"))
    chart: Any = panels(
        alt.layer(
            base.mark_line(strokeWidth=1.2).encode(y=y),
            base.mark_rule().encode(y=alt.Y("seconds_low:Q", scale=scale), y2="seconds_high:Q"),
            base.mark_point(filled=True, size=55).encode(y=y),
        ).properties(height=260),
        table,
    )
    description = f"{facts.study.title}: time of a copy by the last writer of its source."
    return {"cached": finish(chart, description, margin=70, compact_margin=60)}
