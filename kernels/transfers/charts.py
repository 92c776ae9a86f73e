"""Chart of this study: the fastest way in each cell."""

from __future__ import annotations

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
    map_chart,
    present,
)
from analysis.api.quantities import INTERVAL, binary, ratio

from .answers import ANY, DIRECTIONS, KEYS, PLACE_KEYS
from .kinds import MEMORIES, memory_of, method_of

METRIC: Final = "host_time"
"""The clock that ranks the ways: until all pieces have arrived, the CPU's part included."""
LOOP: Final = "loop"
METHODS: Final = (LOOP, "packed", "batch", "graph", "gather")
"""Ways for pieces at any places."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`map`: size over count. The colour is the fastest way, the text its speed relative to the
    loop, which is what most programs use; faint if it is not surely the fastest."""
    table = map_table(facts)
    if table.empty:
        return {"map": None}
    columns = {
        "variant": "fastest",
        "short": "time",
        "interval": INTERVAL,
        "rate": "GB/s",
        "loop": "times as fast as the loop",
        "surely": "faster than the next",
    }
    sizes = [binary(size) for size in sorted(set(table["size"]), reverse=True)]
    legend = alt.Legend(title=None, values=present(METHODS, table["method"]))
    chart = map_chart(
        alt.X("count:O", title="pieces", axis=alt.Axis(labelAngle=0, orient="top")),
        alt.Y("size_text:N", sort=sizes, title="size of a piece"),
        colour("method", METHODS, legend),
        table.assign(figure=table["method"] + "\n" + table["loop"]),
        "the fastest way of moving pieces in each cell of size and count, and how many times as"
        " fast as one copy per piece it is.",
        columns,
        [Select("memory", "memory", "pinned"), Select("direction", "direction", "h2d")],
        opacity=alt.condition("datum.surely === 'yes'", alt.value(1), alt.value(0.75)),
        cell_px=34,
    )
    return {"map": chart}


def map_table(facts: StudyFacts) -> pd.DataFrame:
    """The fastest way in each cell of size and count with measurements of at least two ways.

    One row per machine, direction, kind of memory (or any), size and count, of pitched pieces that
    become packed, on an idle stream.
    """
    rows = fresh_figures(facts, METRIC)
    names = rows["variant"]
    rows = rows.assign(method=names.map(method_of), memory=names.map(memory_of))
    others = [*{*facts.study.case_keys} - {*KEYS}]
    is_move = rows["method"].isin(METHODS) & rows["memory"].isin(MEMORIES)
    is_move &= rows["direction"].isin(DIRECTIONS) & rows[others].isna().all(axis=1)
    for key, value in PLACE_KEYS.items():
        is_move &= rows[key].isna() | rows[key].eq(value)
    rows = rows[is_move & rows["verified"].eq(1)].astype({"size": int, "count": int})
    cell = ["machine", "direction", "memory", "size", "count"]
    rows = pd.concat([rows.assign(memory=ANY), rows]).sort_values("median", kind="stable")
    rank = rows.groupby(cell).cumcount()
    after = rows.loc[rank == 1, [*cell, "ci_low"]]
    loop = rows.loc[rows["method"] == LOOP, [*cell, "median"]].drop_duplicates(cell)
    found = rows[rank == 0].merge(after, on=cell, suffixes=("", "_next")).sort_values(cell)
    found = found.merge(loop, how="left", on=cell, suffixes=("", "_loop"))
    gain = found["median_loop"] / found["median"]
    return found.assign(
        size_text=found["size"].map(binary),
        rate=(found["size"] * found["count"] / found["median"] / 1e9).map("{:.3g}".format),
        loop=[ratio(one) if one > 1 else "" for one in gain],
        surely=np.where(found["ci_high"] < found["ci_low_next"], "yes", "no"),
    )
