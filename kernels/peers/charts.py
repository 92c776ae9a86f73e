"""Charts of this study: sources of rows by size and number, and rates over the number of links."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import BASIS_COLUMNS, Chart, Select, StudyFacts, line_chart, map_chart
from analysis.api.quantities import digits, quantity, ratio

BASE: Final = "from_host"
PEER: Final = "pulled"
SOURCES: Final = {
    "own": "own memory",
    "pushed": "pushed by the peer",
    PEER: "pulled from the peer",
    "two_links": "two links",
    "four_links": "four links",
    BASE: "the host",
}
"""Variants compared by size and number of rows."""
SMALL_POOL, LARGE_POOL = 188, 16384
"""Pools in MiB."""
LINKS: Final = {
    ("copy engines", LARGE_POOL): (
        *("host_copy_engine", "two_copy_engines_apart"),
        *("three_copy_engines_apart", "four_copy_engines_apart"),
    ),
    ("small pool", SMALL_POOL): (BASE, "two_links", "three_links", "four_links"),
    ("sorted, divided", LARGE_POOL): ("", "two_links_in_order", "", "four_links_in_order"),
    ("at random", LARGE_POOL): (BASE, "two_links", "three_links", "four_links"),
}
"""Variants of one to four GPUs that read 262,144 rows of the host, by line and pool."""
COLOURS: Final = alt.Scale(
    type="log", domain=[0.1, 1, 10], range=["#b03a3a", "#7b8089", "#0a7f65"], clamp=True
)
"""Of cells, from worse over even to better, in either palette."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`gains` and `links`, as far as measured, by device time."""
    points = facts.points
    points = points[points["rate"].notna() & (points["metric"] == "gpu_time")]
    small = points[points["case_pool_mib"] == SMALL_POOL]
    return {"gains": gains(small), "links": links(points)}


def gains(points: pd.DataFrame) -> Chart | None:
    """Size over number of rows, each cell with its speed relative to the host, where rows of one
    size and number were measured from both."""
    rows = points[points["variant"].isin(SOURCES)].sort_values("case_row_bytes", kind="stable")
    base = rows[rows["variant"] == BASE].set_index(["machine", "case"])["seconds"]
    rows = rows.join(base.rename("base"), on=["machine", "case"], how="inner")
    rows = rows[rows["variant"] != BASE]
    rows = rows[rows.groupby("case_rows")["case_row_bytes"].transform("nunique") > 1]
    if rows.empty:
        return None
    times = rows["base"] / rows["seconds"]
    rows = rows.assign(
        times=times,
        text=times.map(ratio),
        figure=[digits(value, 2) for value in times],
        time=[quantity(seconds, "s") for seconds in rows["seconds"]],
        row=rows["case_row_bytes"].map("{:.0f} B".format),
        source=rows["variant"].map(SOURCES),
    )
    return map_chart(
        alt.X("case_rows:O", title="rows", axis=alt.Axis(labelAngle=0, orient="top")),
        alt.Y("row:N", sort=list(dict.fromkeys(rows["row"]))[::-1], title="size of a row"),
        alt.Color("times:Q", scale=COLOURS, legend=None),
        rows,
        "how many times as fast rows come from elsewhere as from the host over one link, by their"
        " size and number.",
        {"text": "times as fast as the host", "time": "time", **BASIS_COLUMNS},
        [Select("source", "source", SOURCES[PEER])],
        cell_px=30,
    )


def links(points: pd.DataFrame) -> Chart | None:
    """The rate over the number of links, on machines with four GPUs."""
    points = points[(points["case_row_bytes"] == 656) & (points["case_rows"] == 262144)]
    points = points.set_index(["case_pool_mib", "variant"])
    names = {
        (pool, name): (line, count)
        for (line, pool), of_line in LINKS.items()
        for count, name in enumerate(of_line, 1)
    }
    points = points[points.index.isin(names)]
    line, count = (
        zip(*map(names.__getitem__, points.index), strict=True) if len(points) else ((), ())
    )
    rows = points.assign(line=line, links=count).reset_index()
    rows = rows[rows.groupby("machine")["links"].transform("max") == 4]
    x = alt.X("links:O", title="GPUs, each with its link", axis=alt.Axis(labelAngle=0))
    y, order = alt.Y("rate:Q", title="payload, GB/s"), [line for line, _ in LINKS]
    return line_chart(rows, x, y, "line", order, "rate over links", BASIS_COLUMNS)
