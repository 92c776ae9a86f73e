"""The price of memory: the cost of each kind, and the number of copies to break even."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import (
    ENDS,
    Chart,
    MeasuredRow,
    StudyFacts,
    drawn_whole,
    finish,
    finish_rows,
    line_colour,
    named,
    panels,
    samples_address,
    select,
    si_axis,
    within_reach,
)
from analysis.api.quantities import digits, quantity, quantity_interval
from analysis.api.study import parse_case

from .chart_parts import ROW_PX, binary, direction_select, memory_rows, single_copies, tooltips
from .kinds import MEMORIES, memory_of
from .measured import DIRECTIONS

PARTS = {
    "allocate_time": "allocate",
    "register_time": "page-lock afterwards",
    "write_time": "written by the CPU",
    "read_time": "read by the CPU",
    "free_time": "free",
}


def price_table(facts: StudyFacts) -> pd.DataFrame:
    """Cost of each kind of memory and size: one row per part."""
    rows = []
    for machine, variant, size, metric, row in _prices(facts):
        seconds = row.median
        rows.append(
            {
                "machine": machine,
                "memory": memory_of(variant),
                "size": size,
                "size_text": binary(size),
                "part": PARTS[metric],
                "seconds": seconds,
                "seconds_low": row.ci_low,
                "seconds_high": row.ci_high,
                "time": quantity(seconds, "s"),
                "interval": quantity_interval(seconds, row.ci_low, row.ci_high, "s"),
                "speed": f"{digits(size / seconds / 1e9)} GB/s",
                "href": samples_address(machine, facts.study.name, variant, row.case, metric),
            }
        )
    return pd.DataFrame(rows)


def _prices(facts: StudyFacts) -> Iterator[tuple[str, str, int, str, MeasuredRow]]:
    """(machine, variant, size, metric, summary row) of every part of every price."""
    for row in facts.figures.fresh(*PARTS):
        if row.variant.endswith("_price"):
            yield row.machine, row.variant, int(parse_case(row.case)["size"]), row.metric, row


def price_chart(facts: StudyFacts) -> Chart | None:
    """One panel per machine, one row per kind of memory, one point per part of its price."""
    table = price_table(facts)
    if table.empty:
        return None
    sizes = [binary(size) for size in sorted(set(table["size"]))]
    row, base = memory_rows("memory", "part", "size_text", "time", "interval", "speed")
    base = base.encode(color=line_colour("part", list(PARTS.values()), None))
    reaching = within_reach(base, "seconds")
    ends = [
        drawn_whole(reaching, "seconds", end).mark_tick(thickness=1, size=9).encode(x=_along(end))
        for end in ENDS
    ]
    chart: Any = panels(
        named(
            row,
            reaching.mark_rule().encode(x=_along("begin"), x2="reach:Q"),
            *ends,
            base.mark_point(filled=True, size=70, cursor="pointer").encode(x=_along("seconds")),
        ),
        table,
        select("size_shown", "size", sizes, "16 MiB" if "16 MiB" in sizes else sizes[-1]),
    ).transform_filter("datum.size_text === size_shown")
    description = (
        f"{facts.study.title}: time to allocate, page-lock, write, read and free memory of each"
        f" kind, for {len(facts.machines)} machines."
    )
    return finish_rows(chart, description, margin=130)


def _along(field: str) -> alt.X:
    return alt.X(f"{field}:Q", title="time", scale=alt.Scale(type="log"), axis=si_axis("s"))


def break_even_table(facts: StudyFacts) -> pd.DataFrame:
    """Number of copies after which memory has paid for itself, compared with pageable memory.

    One row per machine, kind, size and direction: the extra cost of allocating and freeing, divided
    by the time that each copy saves. NaN for a kind whose copies save nothing.
    """
    price: dict[tuple[str, str, int], float] = {}
    for machine, variant, size, metric, row in _prices(facts):
        if metric in ("allocate_time", "register_time", "free_time"):
            key = machine, memory_of(variant), size
            price[key] = price.get(key, 0.0) + row.median
    single = single_copies(facts)
    by_host = single[single["metric"] == "host_time"]
    places = by_host[["machine", "memory", "size", "direction"]].itertuples(index=False)
    copies = dict(zip((tuple(place) for place in places), by_host["median"], strict=True))
    rows = []
    for (machine, kind, size), seconds in price.items():
        if kind == "pageable" or (machine, "pageable", size) not in price:
            continue
        extra = seconds - price[machine, "pageable", size]
        for direction in DIRECTIONS:
            slow = copies.get((machine, "pageable", size, direction))
            fast = copies.get((machine, kind, size, direction))
            if slow is None or fast is None:
                continue
            saved = float(slow) - float(fast)
            count = max(extra, 0.0) / saved if saved > 0 else np.nan
            rows.append(
                {
                    "machine": machine,
                    "memory": kind,
                    "size": size,
                    "size_text": binary(size),
                    "direction": direction,
                    "copies": count,
                    "extra": quantity(extra, "s") if extra > 0 else "nothing",
                    "saved": quantity(saved, "s") if saved > 0 else "nothing",
                    "label": _after(count),
                }
            )
    return pd.DataFrame(rows)


def _after(copies: float) -> str:
    if np.isnan(copies):
        return "never"
    return f"{np.ceil(copies):,.0f}" if copies > 0 else "at once"


def break_even_chart(facts: StudyFacts) -> Chart | None:
    """One panel per machine, one row per kind of memory, one column per size: copies to break even,
    as text, because most counts are small."""
    table = break_even_table(facts)
    if table.empty:
        return None
    sizes = [binary(size) for size in sorted(set(table["size"]))]
    bare: dict[str, Any] = {"domain": False, "ticks": False, "grid": False}
    words = (
        alt.Chart()
        .mark_text()
        .encode(
            x=alt.X(
                "size_text:N",
                sort=sizes,
                title="copies to break even, by their size",
                axis=alt.Axis(labelAngle=0, orient="top", **bare),
            ),
            y=alt.Y("memory:N", sort=list(MEMORIES), title=None, axis=alt.Axis(**bare)),
            text="label:N",
            tooltip=tooltips("memory", "direction", "size_text", "label", "extra", "saved"),
        )
        .properties(height=ROW_PX * table["memory"].nunique())
    )
    chart: Any = panels(words, table, direction_select(table)).transform_filter(
        "datum.direction === direction_shown"
    )
    description = (
        f"{facts.study.title}: copies after which memory of each kind and size has paid for itself"
        f" against pageable memory, for {len(facts.machines)} machines."
    )
    return finish(chart, description, margin=130, compact_margin=110)
