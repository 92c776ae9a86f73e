"""The chart of this study: the cost of a copy whose source is in a core's cache."""

from __future__ import annotations

import altair as alt

from analysis.api.charts import Chart, StudyFacts, line_chart, log_scale, si_axis
from analysis.api.quantities import INTERVAL

WRITERS = {
    "copy_from_memory": "nobody",
    "copy_written_here": "the thread that copies",
    "copy_written_elsewhere": "a core that now sleeps",
}


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`cached`: device time over size, a line for each writer of the source."""
    points = facts.points
    points = points[points["variant"].isin(WRITERS) & (points["metric"] == "gpu_time")]
    points = points[points["seconds"].notna()]
    if points.empty:
        return {"cached": None}
    table = points.assign(
        writer=points["variant"].map(WRITERS),
        kib=[f"{b / 1024:g} KiB" for b in points["case_bytes"]],
    )
    axis = alt.Axis(
        values=sorted(set(table["case_bytes"])), labelExpr="datum.value / 1024 + ' KiB'"
    )
    x = alt.X("case_bytes:Q", title="size", scale=log_scale(), axis=axis)
    y = alt.Y("seconds:Q", title="time", scale=log_scale(), axis=si_axis("s"))
    drawing, table = line_chart(table, x, y, "writer", list(WRITERS.values()), intervals=True)
    columns = {"writer": "last written by", "kib": "size", "label": "figure", "interval": INTERVAL}
    description = f"{facts.study.title}: time of a copy by the last writer of its source."
    return {"cached": Chart(drawing, table, description, columns)}
