"""Latency and bandwidth: the line a + n/b fitted to the times of one copy."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    Chart,
    StudyFacts,
    finish,
    finish_rows,
    line_colour,
    named,
    panels,
    select,
    si_axis,
)
from analysis.api.quantities import percent, quantity, quantity_interval
from analysis.api.tables import Estimate

from .chart_parts import direction_select, memory_rows, single_copies, tooltips
from .kinds import MEMORIES
from .line import fit_line

SMALL_BYTES: Final = 24_576
"""To the device, copies up to this size take less device time than the latency of larger ones. They
are no part of that line."""


def line_points(facts: StudyFacts) -> pd.DataFrame:
    """Times of single pieces over size, by kind, direction and clock, beside the fitted ones.

    Columns machine, variant, direction, clock, size, seconds, fitted, and the line's parameters.
    """
    lines = []
    for (metric, direction, _, name), copies in single_copies(facts).groupby(
        ["metric", "direction", "machine", "variant"]
    ):
        table = copies.sort_values("size").rename(columns={"median": "seconds"})
        sizes, seconds = (table[column].to_numpy(dtype=float) for column in ("size", "seconds"))
        is_small = (sizes <= SMALL_BYTES) & ((metric, direction) == ("gpu_time", "h2d"))
        line = fit_line(sizes[~is_small], seconds[~is_small])
        if line is None:
            continue
        lines.append(
            table[["machine", "variant", "memory", "direction", "size", "seconds", "href"]].assign(
                clock=facts.study.clock_of(facts.study.variant(str(name)), str(metric)),
                fitted=line.seconds(sizes),
                time=[quantity(one, "s") for one in seconds],
                misfit=percent(line.misfit),
                **_written("latency", line.latency, "s"),
                **_written("bandwidth", line.bandwidth, "B/s"),
                **_written("half_size", line.half_size, "B"),
                gigabytes=line.bandwidth.value / 1e9,
                gigabytes_low=line.bandwidth.low / 1e9,
                gigabytes_high=line.bandwidth.high / 1e9,
            )
        )
    return pd.concat(lines, ignore_index=True) if lines else pd.DataFrame()


def lines_chart(facts: StudyFacts) -> Chart | None:
    """One panel per machine: measured times as points, and the fitted lines."""
    table = line_points(facts)
    if table.empty:
        return None
    clocks = list(dict.fromkeys(table["clock"]))
    base = alt.Chart().encode(
        x=alt.X(
            "size:Q",
            title="size, B",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(labelExpr="format(datum.value, '.3~s') + 'B'", grid=False),
        ),
        color=line_colour("memory", list(MEMORIES), None),
        tooltip=tooltips("memory", "direction", "time", "latency", "bandwidth", "half_size"),
        href="href:N",
    )
    seconds, scale = si_axis("s"), alt.Scale(type="log")
    chart: Any = panels(
        alt.layer(
            base.mark_line(strokeWidth=1.2).encode(
                y=alt.Y("fitted:Q", title="time", scale=scale, axis=seconds)
            ),
            base.mark_point(filled=True, size=40, cursor="pointer").encode(
                y=alt.Y("seconds:Q", title="time", scale=scale, axis=seconds)
            ),
        ).properties(height=280),
        table,
        *_line_selects(facts, table, clocks),
    ).transform_filter("datum.clock === clock_shown && datum.direction === direction_shown")
    description = (
        f"{facts.study.title}: time over the size of one piece and the line a + n/b fitted to"
        f" it, by kind of memory, for {len(facts.machines)} machines."
    )
    return finish(chart, description, margin=80, compact_margin=70)


def fits_chart(facts: StudyFacts) -> Chart | None:
    """One panel per machine, one row per kind of memory: fitted bandwidth, the rest as text."""
    points = line_points(facts)
    if points.empty:
        return None
    table = points.drop(columns=["size", "seconds", "fitted", "time"])
    table = table.drop_duplicates([name for name in table.columns if name != "href"])
    table["label"] = table["latency"] + " + n / " + table["bandwidth"]
    clocks = list(dict.fromkeys(table["clock"]))
    fields = ("latency", "latency_interval", "bandwidth", "bandwidth_interval")
    row, base = memory_rows("memory", "direction", *fields, "half_size", "misfit")
    chart: Any = panels(
        named(
            row,
            base.mark_bar(height=12, cursor="pointer").encode(
                x=alt.X("gigabytes:Q", title="fitted bandwidth, GB/s", scale=alt.Scale(zero=True))
            ),
            base.mark_rule(style="interval").encode(x="gigabytes_low:Q", x2="gigabytes_high:Q"),
            base.mark_text(align="left", dx=10).encode(x=alt.value("width"), text="label:N"),
        ),
        table.reset_index(drop=True),
        *_line_selects(facts, table, clocks),
    ).transform_filter("datum.clock === clock_shown && datum.direction === direction_shown")
    description = (
        f"{facts.study.title}: latency and bandwidth of single copies by kind of memory, fitted"
        f" to their times, for {len(facts.machines)} machines."
    )
    return finish_rows(chart, description, margin=310, right_px=140)


def _line_selects(facts: StudyFacts, table: pd.DataFrame, clocks: list[str]) -> list[alt.Parameter]:
    by_host = facts.study.metrics["host_time"].label
    return [
        direction_select(table),
        select("clock_shown", "clock", clocks, by_host if by_host in clocks else clocks[0]),
    ]


def _written(name: str, estimate: Estimate, unit: str) -> dict[str, str]:
    return {
        name: quantity(estimate.value, unit),
        f"{name}_interval": quantity_interval(*estimate, unit),
    }
