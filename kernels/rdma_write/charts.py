"""Charts of this study: rates over threads, the ladder beside the write-up's, placement of
counters, and components of a write's time."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import (
    BASIS_COLUMNS,
    MARK_PX,
    Chart,
    Select,
    StudyFacts,
    colour,
    line_chart,
    log_scale,
    part_chart,
    part_rows,
    row_chart,
)
from analysis.api.quantities import quantity
from analysis.api.study import case_id, parse_case

LINE_BYTES: Final = 64
WRITE_UP: Final = "write-up"


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`scaling`, `ladder`, `lines` and `parts`; None for a chart without data."""
    return {
        "scaling": scaling(facts),
        "ladder": ladder(facts),
        "lines": lines(facts),
        "parts": parts(facts),
    }


def lines(facts: StudyFacts) -> Chart | None:
    """Counters on cache lines, for one variant; None without a table of their fields."""
    table = facts.derived("counter_fields")
    if table is None:
        return None
    table = table.assign(
        line=table["offset"] // LINE_BYTES,
        first_byte=table["offset"] % LINE_BYTES,
        last_byte=table["offset"] % LINE_BYTES + 8,
        shown=table["field"].str.replace("finished_devices", "devices"),
    )
    scale = alt.Scale(domain=[0, LINE_BYTES], nice=False)
    axis = alt.Axis(values=list(range(0, LINE_BYTES + 1, 8)))
    base = alt.Chart().encode(
        x=alt.X("first_byte:Q", title="byte of the line", scale=scale, axis=axis),
        y=alt.Y("line:O", title="cache line", axis=alt.Axis(grid=False)),
    )
    writers = ["one thread", "every thread"]
    boxes = base.mark_rect(opacity=0.55).encode(
        x2="last_byte:Q", color=colour("writer", writers, alt.Legend(title="written by"))
    )
    words = base.mark_text(align="left", dx=2, fontSize=9).encode(text="shown:N")
    drawing = alt.layer(boxes, words).properties(height=alt.Step(18))
    description = "Counters of a variant: boxes at their bytes of cache lines of 64 B."
    columns = {name: name for name in ("field", "offset", "writer")}
    return Chart(drawing, table, description, columns, [Select("variant", "variant")])


def rates(facts: StudyFacts) -> pd.DataFrame:
    """Measured points of steps with `mpps`, `mpps_low`, `mpps_high`: millions of writes per
    second."""
    points = facts.points
    points = points[points["seconds"].notna() & (points["state"] != "published")]
    return points.assign(
        mpps=1e-6 / points["seconds"],
        mpps_low=1e-6 / points["seconds_high"],
        mpps_high=1e-6 / points["seconds_low"],
        written=[f"{1e-6 / seconds:.3g} Mpps" for seconds in points["seconds"]],
    )


def scaling(facts: StudyFacts) -> Chart | None:
    """Writes per second over threads in the headline case, by the first and the last steps."""
    points = rates(facts)
    for key, value in parse_case(facts.study.headline).items():
        if key != "threads":
            points = points[points[f"case_{key}"] == value]
    if points.empty:
        return None
    steps = [v.name for v in facts.study.with_role("step") if v.name in set(points["variant"])]
    shown = [steps[place] for place in sorted({*np.linspace(0, len(steps) - 1, 5).astype(int)})]
    threads = alt.Axis(values=sorted(points["case_threads"].unique()))
    scale = alt.Scale(type="log", base=2)
    x = alt.X("case_threads:Q", title="threads per side", scale=scale, axis=threads)
    y = alt.Y("mpps:Q", title="writes, Mpps", scale=alt.Scale(zero=True))
    drawing, points = line_chart(points, x, y, "variant", shown)
    description = f"{facts.study.title}: millions of writes per second over threads."
    return Chart(drawing, points, description, {**BASIS_COLUMNS, "written": "rate"})


def ladder(facts: StudyFacts) -> Chart | None:
    """Rate of each step relative to the first, in the write-up and on every machine."""
    steps = facts.study.with_role("step", "beyond")
    points = rates(facts)
    points = points[points["case"] == case_id(parse_case(facts.study.headline))]
    rows = [
        (facts.inputs.called(str(row.machine)), row.variant, row.seconds)
        for row in points.itertuples()
    ]
    rows += [(WRITE_UP, row.variant, row.seconds) for row in facts.published]
    table = pd.DataFrame(rows, columns=["source", "variant", "seconds"])
    first = table[table["variant"] == steps[0].name].set_index("source")["seconds"]
    table = table.assign(times_first=table["source"].map(first) / table["seconds"])
    table = table.dropna(subset="times_first")
    if table.empty:
        return None
    titles = {variant.name: variant.title for variant in steps}
    table = table.assign(
        name=table["variant"].map(titles), factor=table["times_first"].map("{:.2f}×".format)
    ).dropna(subset="name")
    sources = list(dict.fromkeys(table["source"]))
    x = alt.X("times_first:Q", title="rate relative to the first step", scale=log_scale())
    marks = alt.Chart().mark_point(size=80, filled=True, yOffset=MARK_PX)
    marks = marks.encode(x=x, color=colour("source", sources, alt.Legend(title=None)))
    description = (
        f"{facts.study.title}: rate of each step relative to the first, published and measured."
    )
    drawing = row_chart("variant", list(titles), marks, name="name")
    columns = {"variant": "variant", "source": "machine", "factor": "relative to the first"}
    return Chart(drawing, table, description, columns)


def parts(facts: StudyFacts) -> Chart | None:
    """Components of a write, stacked, for one number of threads."""
    rows = part_rows(facts)
    threads = [parse_case(case)["threads"] for case in rows["case"]]
    rows = rows.assign(ns=rows["seconds"] * 1e9, threads=threads)
    rows = rows.assign(
        time=[quantity(seconds, "s") for seconds in rows["seconds"]],
        all_parts=[quantity(seconds, "s") for seconds in rows["whole"]],
    ).sort_values("threads")
    x = alt.X("ns:Q", title="ns per write", stack="zero")
    description = f"{facts.study.title}: calls of the provider, and our code between them."
    columns = {"variant": "variant", "threads": "threads", "time": "time", "state": "state"}
    chart = part_chart(facts, rows, x, description, columns, figure="all_parts")
    return chart and replace(chart, selects=[Select("threads", "threads")])
