"""Charts of this study: rates over threads, the ladder beside the write-up's, placement of
counters, and components of a write's time."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.api.charts import (
    WIDE_LABELS,
    StudyFacts,
    finish,
    finish_rows,
    named,
    panels,
    part_bars,
    part_rows,
    present,
    tooltip,
    variant_rows,
)
from analysis.api.quantities import quantity
from analysis.api.study import case_id, parse_case

LINE_BYTES = 64
WRITE_UP = "write-up"


def charts(facts: StudyFacts) -> dict[str, Any]:
    """`scaling`, `ladder`, `lines` and `parts`; None for a chart without data."""
    return {
        "scaling": scaling(facts),
        "ladder": ladder(facts),
        "lines": lines(facts),
        "parts": parts(facts),
    }


def lines(facts: StudyFacts) -> Any:
    """Counters on cache lines, one panel per variant; None without a table of their fields."""
    table = facts.derived("counter_fields")
    if table is None:
        return None
    table = table.copy()
    table["line"] = table["offset"] // LINE_BYTES
    table["first_byte"] = table["offset"] % LINE_BYTES
    table["last_byte"] = table["first_byte"] + 8
    table["shown"] = table["field"].str.replace("finished_devices", "devices")
    variants = list(dict.fromkeys(table["variant"]))
    base = alt.Chart().encode(
        y=alt.Y("line:O", title="cache line", axis=alt.Axis(grid=False)),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("variant", "field", "offset", "writer")],
    )
    across = alt.X(
        "first_byte:Q",
        title="byte of the line",
        scale=alt.Scale(domain=[0, LINE_BYTES], nice=False),
        axis=alt.Axis(values=list(range(0, LINE_BYTES + 1, 8)), grid=True),
    )
    colour = alt.Color(
        "writer:N",
        title="written by",
        scale=alt.Scale(domain=["one thread", "every thread"]),
        legend=alt.Legend(orient="top"),
    )
    chart = (
        alt.layer(
            base.mark_rect(opacity=0.55).encode(x=across, x2="last_byte:Q", color=colour),
            base.mark_text(align="left", dx=2, fontSize=9, font=WIDE_LABELS).encode(
                x=across, text="shown:N"
            ),
        )
        .properties(height=alt.Step(15))
        .facet(facet=alt.Facet("variant:N", title=None, sort=variants), columns=1, data=table)
        .resolve_scale(y="independent")
        .resolve_axis(x="independent")
    )
    description = "Counters of three variants: boxes at their bytes of cache lines of 64 B."
    return finish(chart, description, margin=60, compact_margin=50)


def rates(facts: StudyFacts) -> pd.DataFrame:
    """Measured points with `mpps`, `mpps_low`, `mpps_high`: millions of writes per second."""
    points = facts.points
    points = points[points["seconds"].notna() & (points["state"] != "published")].copy()
    for name, seconds in (("mpps", "seconds"), ("mpps_low", "seconds_high"),
                          ("mpps_high", "seconds_low")):  # fmt: skip
        points[name] = 1e-6 / points[seconds]
    return points


def scaling(facts: StudyFacts) -> Any:
    """Writes per second over threads, one line per variant, for the headline case."""
    points = rates(facts)
    for key, value in parse_case(facts.study.headline).items():
        if key != "threads":
            points = points[points[f"case_{key}"] == value]
    if points.empty:
        return None
    names = present(facts.study.variant_names, points["variant"])
    base = alt.Chart().encode(
        x=alt.X("case_threads:O", title="threads per side"),
        color=alt.Color(
            "variant:O",
            sort=names,
            scale=alt.Scale(domain=names),
            legend=alt.Legend(orient="bottom", title="steps in order"),
        ),
        tooltip=[*tooltip(facts), alt.Tooltip("mpps:Q", title="Mpps", format=".3")],
        href="href:N",
    )
    y = alt.Y("mpps:Q", title="writes, Mpps", scale=alt.Scale(zero=True))
    chart = panels(
        alt.layer(
            base.mark_line().encode(y=y, detail="variant:N"),
            base.mark_rule().encode(y=alt.Y("mpps_low:Q", title="writes, Mpps"), y2="mpps_high:Q"),
            base.mark_point(filled=True, size=40, cursor="pointer").encode(y=y),
        ).properties(height=300),
        points,
    )
    description = f"{facts.study.title}: millions of writes per second over threads."
    return finish(chart, description, margin=70, compact_margin=60)


def ladder(facts: StudyFacts) -> Any:
    """Rate of each step relative to the first, in the write-up and on every machine."""
    steps = [variant.name for variant in facts.study.with_role("step", "beyond")]
    points = rates(facts)
    points = points[points["case"] == case_id(parse_case(facts.study.headline))]
    rows = [(row.machine, row.variant, row.seconds) for row in points.itertuples()]
    rows += [(WRITE_UP, row.variant, row.seconds) for row in facts.published]
    table = pd.DataFrame(rows, columns=["machine", "variant", "seconds"])
    first = table[table["variant"] == steps[0]].set_index("machine")["seconds"]
    table["times_first"] = table["machine"].map(first) / table["seconds"]
    table = table.dropna(subset="times_first").drop(columns="seconds")
    if table.empty:
        return None
    table["factor"] = table["times_first"].map("{:.2f}".format)
    machines = [*facts.machines, WRITE_UP]
    row = variant_rows(steps, table)
    base = alt.Chart().encode(
        y=row,
        color=alt.Color(
            "machine:N",
            scale=alt.Scale(domain=machines),
            legend=alt.Legend(orient="top", title=None),
        ),
        tooltip=[alt.Tooltip(f"{name}:N") for name in ("variant", "machine", "factor")],
    )
    x = alt.X("times_first:Q", title=f"rate relative to {steps[0]}", scale=alt.Scale(type="log"))
    shape = alt.Shape(
        "machine:N",
        scale=alt.Scale(domain=machines, range=["circle"] * len(facts.machines) + ["diamond"]),
    )
    chart = base.mark_point(size=80, filled=True).encode(x=x, shape=shape)
    description = (
        f"{facts.study.title}: rate of each step relative to the first, published and measured."
    )
    return finish_rows(named(row, chart).properties(data=table), description, margin=200)


def parts(facts: StudyFacts) -> Any:
    """Components of a write, stacked, with a tick at the time of a whole write."""
    rows = part_rows(facts)
    if rows.empty:
        return None
    keys = rows[["machine", "variant", "case"]].itertuples(index=False, name=None)
    timed = [facts.figures.measured[*key, "op_time"].median * 1e9 for key in keys]
    threads = [parse_case(case)["threads"] for case in rows["case"]]
    rows = rows.assign(ns=rows["seconds"] * 1e9, timed=timed, threads=threads)
    rows["time"] = [quantity(seconds, "s") for seconds in rows["seconds"]]
    rows = rows.drop(columns=["seconds", "whole"])
    tips = {
        **{name: name for name in ("variant", "machine", "threads", "part", "time", "state")},
        "timed": "whole write, ns",
    }
    row = variant_rows(facts.study.variant_names, rows)
    bars = part_bars(facts, rows, alt.X("ns:Q", title="ns per write", stack="zero"), row, tips)
    whole = (
        alt.Chart()
        .transform_filter("datum.order === 0")
        .mark_tick(thickness=2, size=21, style="interval")
        .encode(x=alt.X("timed:Q", title="ns per write"), y=row)
    )
    description = f"{facts.study.title}: calls of the provider, and our code between them."
    return finish_rows(panels(named(row, bars, whole), rows), description, margin=200)
