"""Charts of this study: rates over the number of addresses and over the size of a pool."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    BASIS_COLUMNS,
    Chart,
    Select,
    StudyFacts,
    dot_chart,
    line_chart,
    log_scale,
)
from analysis.api.quantities import binary

STREAMING: Final = {"rows": "plain", "rows_streaming": "streaming hints"}
ADDRESSES: Final = ("4 KiB", "64 KiB", "64 KiB, ascending", "512 KiB", "2 MiB")
"""Distances between addresses that are drawn."""
ROWS: Final = ("128 B", "512 B", "656 B", "1024 B", "4096 B")
"""Sizes of rows that are drawn."""
MANY_ROWS: Final = 2048
PER_US: Final = "million reads per second"


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`reach`, `latency`, `kinds` and `pools`, as far as measured."""
    points = facts.points
    points = points[points["seconds"].notna()]
    reads = reads_of(points, "independent_lines")
    names_memory = reads["case_memory"].notna()
    latency = alt.Y("ns:Q", title="time of a read, ns", scale=alt.Scale(zero=False))
    dependent = reads_of(points, "dependent_lines")
    dependent = dependent[dependent["case_memory"].isna()]
    rate = alt.Y("reads_per_us:Q", title=PER_US, scale=log_scale())
    return {
        "reach": _over_count(reads[~names_memory], rate, "rate of independent reads"),
        "latency": _over_count(dependent, latency, "time of dependent reads"),
        "kinds": kinds(reads[names_memory]),
        "pools": pools(points),
    }


def reads_of(points: pd.DataFrame, variant: str) -> pd.DataFrame:
    """Points of a variant: millions of reads per second, ns per read, and the distance of the
    addresses as text."""
    found = points[points["variant"] == variant]
    apart = [binary(kib * 2**10) for kib in found["case_stride_kib"]]
    order = found["case_order"].map({"random": ""}).fillna(", ascending")
    each = found["seconds"] / found["case_reads"]
    return found.assign(
        reads_per_us=1e-6 / each, ns=each * 1e9, addresses=pd.Series(apart, found.index) + order
    ).sort_values(["case_stride_kib", "case_order"], ascending=[True, False])


def _over_count(rows: pd.DataFrame, y: alt.Y, what: str) -> Chart | None:
    """`y` over the number of addresses, a line for each distance between them."""
    scale = alt.Scale(type="log", base=2, nice=False)
    x = alt.X("case_count:Q", title="addresses", scale=scale)
    what = f"{what} over the number of addresses, a line for each distance between them."
    columns = {"addresses": "addresses", **BASIS_COLUMNS}
    return line_chart(rows, x, y, "addresses", ADDRESSES, what, columns)


def kinds(rows: pd.DataFrame) -> Chart | None:
    """A row a kind of memory: the rate by number of addresses."""
    memories = [name for name in dict.fromkeys(rows["case_memory"]) if name != "device"]
    count = rows["case_count"].map("{:,.0f}".format)
    return dot_chart(
        rows.assign(addresses=count),
        alt.X("reads_per_us:Q", title=PER_US, scale=log_scale()),
        "case_memory",
        [*memories, "device"],
        "rate of independent reads by kind of memory and number of addresses.",
        BASIS_COLUMNS,
        by="addresses",
        names=list(dict.fromkeys(count[rows["case_count"].sort_values().index])),
        legend="addresses",
    )


def pools(points: pd.DataFrame) -> Chart | None:
    """The rate of many random rows over the size of the pool, a line for each size of a row."""
    rows = points[points["variant"].isin(list(STREAMING)) & (points["case_order"] == "random")]
    rows = rows[rows["case_rows"] > MANY_ROWS]
    rows = rows.assign(
        pool_gib=rows["case_pool_mib"] / 1024,
        row=rows["case_row_bytes"].map("{:.0f} B".format),
        hints=rows["variant"].map(STREAMING),
    ).sort_values(["hints", "case_row_bytes"])
    scale = alt.Scale(type="log", base=2, nice=False)
    return line_chart(
        rows,
        alt.X("pool_gib:Q", title="pool, GiB", scale=scale),
        alt.Y("rate:Q", title="payload, GB/s"),
        "row",
        ROWS,
        "payload rate of rows at random places over the size of the pool, a line for each size of"
        " a row.",
        {"row": "row", **BASIS_COLUMNS},
        [Select("hints", "loads")],
    )
