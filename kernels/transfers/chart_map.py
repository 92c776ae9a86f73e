"""The crossover map: the fastest way of moving pieces, over their size and count."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import altair as alt
import pandas as pd

from analysis.api.charts import (
    CELL_PX,
    Chart,
    StudyFacts,
    finish,
    panels,
    present,
    samples_address,
    select,
)
from analysis.api.quantities import INTERVAL, quantity, quantity_interval, ratio

from .chart_parts import binary, direction_select
from .kinds import MEMORIES, method_of
from .measured import METRIC, PIECE_KEYS, PLACE_KEYS, rows_in_place

ANY = "any"
ROW_PX = 34
LOOP = "loop"
METHODS = (LOOP, "packed", "2d", "batch", "graph", "gather")


def map_table(facts: StudyFacts) -> pd.DataFrame:
    """The fastest way in each cell of size and count with measurements of at least two ways.

    One row per machine, direction, kind of memory (or any), size and count.
    """
    rows = rows_in_place(facts.study, facts.summary)
    rows = rows[rows["variant"].map(method_of).isin(METHODS)]
    cases = _cases_in_place(facts)
    fastest_first: list[Any] = list(rows.sort_values("median", kind="stable").itertuples())
    cells: dict[tuple[str, str, str, int, int], list[Any]] = defaultdict(list)
    for way in fastest_first:
        for memory in (ANY, way.memory):
            cells[way.machine, way.direction, memory, int(way.size), int(way.count)].append(way)
    found = []
    for cell in sorted(cells, key=lambda cell: (*cell[:2], cell[2] != ANY, *cell[2:])):
        machine, direction, memory, size, count = cell
        if len(ways := cells[cell]) < 2:
            continue
        best, second = ways[:2]
        loop = next((way for way in ways if method_of(way.variant) == LOOP), best)
        found.append(
            {
                "machine": machine,
                "direction": direction,
                "memory": memory,
                "size": size,
                "count": count,
                "size_text": binary(size),
                "fastest": best.variant,
                "method": method_of(best.variant),
                "time": quantity(best.median, "s"),
                "interval": quantity_interval(best.median, best.ci_low, best.ci_high, "s"),
                "rate": size * count / best.median / 1e9,
                "next": second.variant,
                "by": ratio(second.median / best.median),
                "loop": "" if loop is best else ratio(loop.median / best.median),
                "surely": "yes" if best.ci_high < second.ci_low else "no",
                "href": samples_address(
                    *(machine, facts.study.name, best.variant),
                    cases[best.variant, size, count, direction],
                    METRIC,
                ),
            }
        )
    return pd.DataFrame(found)


def _cases_in_place(facts: StudyFacts) -> dict[tuple[str, int, int, str], str]:
    """The cases of `rows_in_place`, by variant, size, number and direction."""
    found = {}
    for variant in facts.study.variants:
        for case in variant.cases:
            keys = {**PLACE_KEYS, **case.values}
            if keys.keys() == {*PLACE_KEYS, *PIECE_KEYS} and PLACE_KEYS.items() <= keys.items():
                place = int(keys["size"]), int(keys["count"]), str(keys["direction"])
                found[variant.name, *place] = case.id
    return found


def map_chart(facts: StudyFacts) -> Chart | None:
    """One panel per machine: size over count. The colour is the fastest way, the text its speed
    relative to the loop, which is what most programs use."""
    table = map_table(facts)
    if table.empty:
        return None
    sizes = [binary(size) for size in sorted(set(table["size"]), reverse=True)]
    memories = [ANY, *present(MEMORIES, table["memory"])]
    shown = "datum.direction === direction_shown && datum.memory === memory_shown"
    base = alt.Chart().encode(
        x=alt.X("count:O", title="pieces", axis=alt.Axis(labelAngle=0, orient="top")),
        y=alt.Y("size_text:N", sort=sizes, title="size of a piece"),
        tooltip=[
            alt.Tooltip(f"{field}:N", title=title)
            for field, title in (
                *(("fastest", "fastest"), ("time", "time"), ("interval", INTERVAL)),
                *(("loop", "times as fast as the loop"), ("next", "next")),
                *(("by", "times as fast as the next"), ("surely", "intervals apart")),
                ("machine", "machine"),
            )
        ]
        + [alt.Tooltip("rate:Q", title="GB/s", format=".3~r")],
        href="href:N",
    )
    faint = alt.condition("datum.surely === 'yes'", alt.value(0.75), alt.value(0.3))
    colour = alt.Color(
        "method:N",
        scale=alt.Scale(domain=list(METHODS)),
        legend=alt.Legend(orient="top", title=None, symbolType="square"),
    )
    chart: Any = panels(
        alt.layer(
            base.mark_rect(cursor="pointer").encode(color=colour, opacity=faint),
            base.mark_text(fontSize=10, lineBreak=" ", dy=-5).encode(text="label:N"),
        ).properties(height=ROW_PX * len(sizes)),
        table.assign(label=table["method"] + " " + table["loop"]),
        select("memory_shown", "memory", memories, "pinned" if "pinned" in memories else ANY),
        direction_select(table),
    ).transform_filter(shown)
    description = (
        f"{facts.study.title}: the fastest way of moving pieces in each cell of size and count,"
        f" and how many times as fast as one copy per piece it is, for {len(facts.machines)}"
        " machines."
    )
    least = CELL_PX * table["count"].nunique()
    return finish(chart, description, margin=90, compact_margin=80, least=least)
