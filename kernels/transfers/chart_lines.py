"""Latency and bandwidth: the line a + n/b fitted to the times of one copy."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    MARK_PX,
    Chart,
    Select,
    StudyFacts,
    line_chart,
    log_scale,
    row_chart,
    si_axis,
)
from analysis.api.model import PREDICTED
from analysis.api.quantities import percent, quantity, quantity_interval
from analysis.api.tables import Estimate

from .chart_parts import single_copies
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
    """Measured times as points, and the fitted lines, by kind of memory."""
    table = line_points(facts)
    if table.empty:
        return None
    fitted = table.assign(seconds=table["fitted"], state=PREDICTED)
    table = pd.concat([table.assign(state="measured"), fitted], ignore_index=True)
    axis = alt.Axis(labelExpr="format(datum.value, '.3~s') + 'B'")
    x = alt.X("size:Q", title="size", scale=log_scale(), axis=axis)
    y = alt.Y("seconds:Q", title="time", scale=log_scale(), axis=si_axis("s"))
    by = ["machine", "direction", "clock"]
    drawing, table = line_chart(table, x, y, "memory", MEMORIES[:5], by=by)
    description = (
        f"{facts.study.title}: time over the size of one piece and the line a + n/b fitted to it,"
        " by kind of memory."
    )
    columns = {
        "memory": "memory",
        "time": "time",
        "latency": "latency",
        "bandwidth": "bandwidth",
        "half_size": "size at half the bandwidth",
    }
    return Chart(drawing, table, description, columns, _selects(facts))


def fits_chart(facts: StudyFacts) -> Chart | None:
    """A row for each kind of memory: fitted bandwidth as a bar, the rest as text."""
    points = line_points(facts)
    if points.empty:
        return None
    table = points.drop_duplicates(["machine", "memory", "direction", "clock"])
    table = table.assign(label=table["latency"] + " + n / " + table["bandwidth"])
    base = alt.Chart().encode(x=alt.X("gigabytes:Q", title="fitted bandwidth, GB/s"))
    drawing = row_chart(
        "memory",
        MEMORIES,
        base.mark_bar(height=11, yOffset=MARK_PX),
        base.mark_rule(yOffset=MARK_PX).encode(x="gigabytes_low:Q", x2="gigabytes_high:Q"),
        figure="label",
    )
    description = (
        f"{facts.study.title}: latency and bandwidth of single copies by kind of memory, fitted"
        " to their times."
    )
    columns = {
        "memory": "memory",
        "latency": "latency",
        "latency_interval": "its interval",
        "bandwidth": "bandwidth",
        "bandwidth_interval": "its interval",
        "misfit": "misfit",
    }
    return Chart(drawing, table, description, columns, _selects(facts))


def _selects(facts: StudyFacts) -> list[Select]:
    by_host = facts.study.metrics["host_time"].label
    return [Select("direction", "direction", "h2d"), Select("clock", "clock", by_host)]


def _written(name: str, estimate: Estimate, unit: str) -> dict[str, str]:
    return {
        name: quantity(estimate.value, unit),
        f"{name}_interval": quantity_interval(*estimate, unit),
    }
