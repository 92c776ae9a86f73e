"""The price of memory: the cost of each kind, and the number of copies to break even."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import (
    MARK_PX,
    Chart,
    MeasuredRow,
    Select,
    StudyFacts,
    colour,
    log_scale,
    row_chart,
    samples_address,
    si_axis,
)
from analysis.api.quantities import digits, quantity, quantity_interval
from analysis.api.study import parse_case

from .chart_parts import binary, single_copies
from .kinds import MEMORIES, memory_of
from .measured import DIRECTIONS

ROW_PX = 24
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
    for row in facts.fresh(*PARTS):
        if row.variant.endswith("_price"):
            yield row.machine, row.variant, int(parse_case(row.case)["size"]), row.metric, row


def price_chart(facts: StudyFacts) -> Chart | None:
    """A row for each kind of memory, a point for each part of its price, with its interval."""
    table = price_table(facts)
    if table.empty:
        return None
    table = table.sort_values("size")
    parts = list(PARTS.values())
    base = alt.Chart().encode(
        x=alt.X("seconds:Q", title="time", scale=log_scale(), axis=si_axis("s")),
        color=colour("part", parts, alt.Legend(title=None)),
    )
    drawing = row_chart(
        "memory",
        MEMORIES,
        base.mark_rule(yOffset=MARK_PX).encode(x="seconds_low:Q", x2="seconds_high:Q"),
        base.mark_point(filled=True, size=70, yOffset=MARK_PX),
    )
    description = (
        f"{facts.study.title}: time to allocate, page-lock, write, read and free memory of each"
        " kind."
    )
    columns = {
        "memory": "memory",
        "part": "part",
        "size_text": "size",
        "time": "time",
        "interval": "interval",
        "speed": "rate",
    }
    return Chart(drawing, table, description, columns, [Select("size_text", "size", "16 MiB")])


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
    """A row for each kind of memory, a column for each size: copies to break even, as text,
    because most counts are small."""
    table = break_even_table(facts)
    if table.empty:
        return None
    sizes = [binary(size) for size in sorted(set(table["size"]))]
    bare = alt.Axis(domain=False, ticks=False, grid=False)
    top = alt.Axis(labelAngle=0, orient="top", domain=False, ticks=False, grid=False)
    words = (
        alt.Chart()
        .mark_text()
        .encode(
            x=alt.X("size_text:N", sort=sizes, title="copies to break even, by size", axis=top),
            y=alt.Y("memory:N", sort=list(MEMORIES), title=None, axis=bare),
            text="label:N",
        )
        .properties(height=alt.Step(ROW_PX))
    )
    description = (
        f"{facts.study.title}: copies after which memory of each kind and size has paid for itself"
        " against pageable memory."
    )
    columns = {
        "memory": "memory",
        "size_text": "size",
        "label": "copies",
        "extra": "costs more",
        "saved": "saved by a copy",
    }
    return Chart(words, table, description, columns, [Select("direction", "direction", "h2d")])
