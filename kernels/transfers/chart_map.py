"""The crossover map: the fastest way of moving pieces, over their size and count."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import altair as alt
import pandas as pd

from analysis.api.charts import Chart, Select, StudyFacts, colour, present, samples_address
from analysis.api.charts import map_chart as map_chart_of
from analysis.api.quantities import INTERVAL, quantity, quantity_interval, ratio

from .chart_parts import binary
from .kinds import method_of
from .measured import METRIC, PIECE_KEYS, PLACE_KEYS, rows_in_place

ANY = "any"
ROW_PX = 34
LOOP = "loop"
METHODS = (LOOP, "packed", "batch", "graph", "gather")
"""Ways for pieces at any places."""


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
                "rate": f"{size * count / best.median / 1e9:.3g}",
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
    """Size over count. The colour is the fastest way, the text its speed relative to the loop,
    which is what most programs use; faint if it is not surely the fastest."""
    table = map_table(facts)
    if table.empty:
        return None
    sizes = [binary(size) for size in sorted(set(table["size"]), reverse=True)]
    table = table.assign(figure=table["method"] + "\n" + table["loop"])
    methods = alt.Legend(title=None, values=present(METHODS, table["method"]))
    opacity = alt.condition("datum.surely === 'yes'", alt.value(1), alt.value(0.75))
    columns = {
        "fastest": "fastest",
        "time": "time",
        "interval": INTERVAL,
        "rate": "GB/s",
        "loop": "times as fast as the loop",
        "next": "next",
        "by": "times as fast as the next",
        "surely": "intervals apart",
    }
    description = (
        f"{facts.study.title}: the fastest way of moving pieces in each cell of size and count,"
        " and how many times as fast as one copy per piece it is."
    )
    return map_chart_of(
        alt.X("count:O", title="pieces", axis=alt.Axis(labelAngle=0, orient="top")),
        alt.Y("size_text:N", sort=sizes, title="size of a piece"),
        colour("method", METHODS, methods),
        table,
        description,
        columns,
        [Select("memory", "memory", "pinned"), Select("direction", "direction", "h2d")],
        opacity=opacity,
        cell_px=ROW_PX,
    )
