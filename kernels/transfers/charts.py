"""Charts of this study: the fastest way in each cell, and the fitted lines."""

from __future__ import annotations

from functools import partial
from typing import Final

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import (
    Chart,
    Select,
    StudyFacts,
    colour,
    fresh_figures,
    line_chart,
    log_scale,
    map_chart,
    present,
    samples_addresses,
    si_axis,
)
from analysis.api.model import PREDICTED
from analysis.api.quantities import INTERVAL, binary, quantity, quantity_interval, ratio
from analysis.api.study import Floats

from .answers import ANY
from .kinds import MEMORIES, memory_of, method_of
from .measured import DIRECTIONS, METRIC, PLACE_KEYS, moves

LOOP: Final = "loop"
METHODS: Final = (LOOP, "packed", "batch", "graph", "gather")
"""Ways for pieces at any places."""
MIN_SIZES: Final = 4
"""Of a fitted line: two for the line, and two to assess the fit."""
SMALL_BYTES: Final = 24_576
"""To the device, copies up to this size take less device time than the latency of larger ones. They
are no part of that line."""
BY_DIRECTION: Final = Select("direction", "direction", "h2d")


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """Charts by their names on the page; None without data."""
    return {"map": fastest_ways(facts), "lines": lines(facts)}


def map_table(facts: StudyFacts) -> pd.DataFrame:
    """The fastest way in each cell of size and count with measurements of at least two ways.

    One row per machine, direction, kind of memory (or any), size and count, of pitched pieces that
    become packed, on an idle stream.
    """
    rows = moves(facts.study, facts.summary)
    rows = rows.assign(method=rows["variant"].map(method_of))
    rows = rows[(rows["metric"] == METRIC) & rows["method"].isin(METHODS)]
    for key, value in PLACE_KEYS.items():
        rows = rows[rows[key] == value]
    cell = ["machine", "direction", "memory", "size", "count"]
    rows = pd.concat([rows.assign(memory=ANY), rows]).sort_values("median", kind="stable")
    rank = rows.groupby(cell).cumcount()
    after = rows.loc[rank == 1, [*cell, "ci_low"]]
    loop = rows.loc[rows["method"] == LOOP, [*cell, "median"]].drop_duplicates(cell)
    found = rows[rank == 0].merge(after, on=cell, suffixes=("", "_next")).sort_values(cell)
    found = found.merge(loop, how="left", on=cell, suffixes=("", "_loop"))
    times = found["median"], found["ci_low"], found["ci_high"]
    gain = found["median_loop"] / found["median"]
    return found.assign(
        size_text=found["size"].map(binary),
        time=[quantity(seconds, "s") for seconds in found["median"]],
        interval=[*map(partial(quantity_interval, unit="s"), *times)],
        rate=(found["size"] * found["count"] / found["median"] / 1e9).map("{:.3g}".format),
        loop=[ratio(one) if one > 1 else "" for one in gain],
        surely=np.where(found["ci_high"] < found["ci_low_next"], "yes", "no"),
        href=samples_addresses(found),
    )


def fastest_ways(facts: StudyFacts) -> Chart | None:
    """Size over count. The colour is the fastest way, the text its speed relative to the loop,
    which is what most programs use; faint if it is not surely the fastest."""
    table = map_table(facts)
    if table.empty:
        return None
    columns = {
        "variant": "fastest",
        "time": "time",
        "interval": INTERVAL,
        "rate": "GB/s",
        "loop": "times as fast as the loop",
        "surely": "faster than the next",
    }
    sizes = [binary(size) for size in sorted(set(table["size"]), reverse=True)]
    legend = alt.Legend(title=None, values=present(METHODS, table["method"]))
    return map_chart(
        alt.X("count:O", title="pieces", axis=alt.Axis(labelAngle=0, orient="top")),
        alt.Y("size_text:N", sort=sizes, title="size of a piece"),
        colour("method", METHODS, legend),
        table.assign(figure=table["method"] + "\n" + table["loop"]),
        "the fastest way of moving pieces in each cell of size and count, and how many times as"
        " fast as one copy per piece it is.",
        columns,
        [Select("memory", "memory", "pinned"), BY_DIRECTION],
        opacity=alt.condition("datum.surely === 'yes'", alt.value(1), alt.value(0.75)),
        cell_px=34,
    )


def single_copies(facts: StudyFacts, *clocks: str) -> pd.DataFrame:
    """Figures of loops of one piece, by these clocks if they describe them, and their `memory`."""
    rows = fresh_figures(facts, *clocks)
    rows = rows[rows["variant"].isin([f"{kind}_{LOOP}" for kind in MEMORIES])]
    rows = rows[(rows["count"] == 1) & rows["direction"].isin(DIRECTIONS)]
    # If the CPU takes part in a copy, the time between events does not describe it.
    by_cpu = rows["variant"].isin([v.name for v in facts.study.variants if v.host_work])
    rows = rows[(rows["metric"] == "host_time") | ~by_cpu]
    return rows.assign(memory=rows["variant"].map(memory_of))


def fit_line(size: Floats, seconds: Floats) -> tuple[float, float] | None:
    """Latency in s and bandwidth in B/s of the line through times `seconds` [sizes] of `size` bytes
    [sizes]; None for too few sizes.

    Least squares of the logarithms of times, so that relative errors count alike at every size.
    """
    from scipy.optimize import curve_fit  # here, as it is slow to import and few fit a line

    if len(set(size.tolist())) < MIN_SIZES:
        return None

    def logs(size: Floats, latency: float, bandwidth: float) -> Floats:
        return np.asarray(np.log(np.exp(latency) + size / np.exp(bandwidth)))

    start = np.log([seconds.min(), size.max() / seconds.max()])
    solved, _ = curve_fit(logs, size, np.log(seconds), start, method="trf", x_scale="jac")
    latency, bandwidth = np.exp(solved).tolist()
    return latency, bandwidth


def lines(facts: StudyFacts) -> Chart | None:
    """Times of one copy over its size as points, and the fitted lines, by kind of memory."""
    parts = [pd.DataFrame()]
    groups = single_copies(facts, "gpu_time", "host_time").groupby(
        ["metric", "direction", "machine", "variant"]
    )
    for (metric, direction, _, name), rows in groups:
        sizes, seconds = (rows[column].to_numpy(float) for column in ("size", "median"))
        is_small = (sizes <= SMALL_BYTES) & ((metric, direction) == ("gpu_time", "h2d"))
        if (line := fit_line(sizes[~is_small], seconds[~is_small])) is None:
            continue
        latency, bandwidth = line
        rows = rows.assign(
            clock=facts.study.clock_of(facts.study.variant(str(name)), str(metric)),
            latency=quantity(latency, "s"),
            bandwidth=quantity(bandwidth, "B/s"),
            half_size=quantity(latency * bandwidth, "B"),
        )
        parts += [rows, rows.assign(median=latency + sizes / bandwidth, state=PREDICTED)]
    axis = alt.Axis(labelExpr="format(datum.value, '.3~s') + 'B'")
    return line_chart(
        pd.concat(parts),
        alt.X("size:Q", title="size", scale=log_scale(), axis=axis),
        alt.Y("median:Q", title="time", scale=log_scale(), axis=si_axis("s")),
        "memory",
        MEMORIES,
        "time over the size of one piece and the line a + n/b fitted to it, by kind of memory.",
        {
            **{name: name for name in ("memory", "latency", "bandwidth")},
            "short": "time",
            "half_size": "size at half the bandwidth",
        },
        [BY_DIRECTION, Select("clock", "clock", facts.study.metrics["host_time"].label)],
    )
