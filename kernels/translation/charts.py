"""Charts of this study: rates over the number of addresses and over the size of a pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    BASIS_COLUMNS,
    MARK_PX,
    Chart,
    Select,
    StudyFacts,
    colour,
    faded_if_stale,
    line_chart,
    log_scale,
    row_chart,
)

STREAMING: Final = {"rows": "plain", "rows_streaming": "streaming hints"}
ADDRESSES: Final = ("4 KiB", "64 KiB", "64 KiB, ascending", "512 KiB", "2 MiB")
"""Distances between addresses that are drawn."""
ROWS: Final = ("128 B", "512 B", "656 B", "1024 B", "4096 B")
"""Sizes of rows that are drawn."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`reach`, `latency`, `kinds` and `pools`, as far as measured."""
    points = facts.points
    points = points[points["seconds"].notna()]
    return {
        "reach": _reach(facts, reads_of(points, "independent_lines")),
        "latency": _latency(facts, reads_of(points, "dependent_lines")),
        "kinds": _kinds(facts, reads_of(points, "independent_lines", by_memory=True)),
        "pools": _pools(facts, rows_of(points)),
    }


def reads_of(points: pd.DataFrame, variant: str, *, by_memory: bool = False) -> pd.DataFrame:
    """Points of a variant, in the cases that name the memory or in the others: millions of reads
    per second, ns per read, and the distance of the addresses as text."""
    found = points[(points["variant"] == variant) & (points["case_memory"].notna() == by_memory)]
    random = found["case_order"] == "random"
    apart = found["case_stride_kib"].map(_binary).astype(object)  # also if there are no rows
    return found.assign(
        reads_per_us=found["case_reads"] / found["seconds"] / 1e6,
        ns=found["seconds"] / found["case_reads"] * 1e9,
        addresses=apart.where(random, apart + ", ascending"),
    ).sort_values(["case_stride_kib", "case_order"], ascending=[True, False])


def rows_of(points: pd.DataFrame) -> pd.DataFrame:
    """Points of the gathers of many random rows: pool size in GiB, and row size as text."""
    found = points[
        points["variant"].isin(list(STREAMING))
        & (points["case_order"] == "random")
        & (points["case_rows"] > 2048)
    ]
    return found.assign(
        pool_gib=found["case_pool_mib"] / 1024,
        row=found["case_row_bytes"].map(lambda size: f"{size:.0f} B"),
        hints=found["variant"].map(STREAMING),
    ).sort_values(["hints", "case_row_bytes"])


def _reach(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """The rate over the number of addresses, a line for each distance between them."""
    y = alt.Y("reads_per_us:Q", title="million reads per second", scale=log_scale())
    return _over_count(facts, rows, y, "rate of independent reads")


def _latency(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """The same for the time of a read on which the next one depends."""
    y = alt.Y("ns:Q", title="time of a read, ns", scale=alt.Scale(zero=False))
    return _over_count(facts, rows, y, "time of dependent reads")


def _over_count(facts: StudyFacts, rows: pd.DataFrame, y: alt.Y, what: str) -> Chart | None:
    if rows.empty:
        return None
    x = alt.X("case_count:Q", title="addresses", scale=alt.Scale(type="log", base=2, nice=False))
    description = (
        f"{facts.study.title}: {what} over the number of addresses, a line for each distance"
        " between them."
    )
    return _lines(rows, x, y, "addresses", ADDRESSES, description)


def _kinds(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """A row a kind of memory: the rate by number of addresses."""
    if rows.empty:
        return None
    kinds = [name for name in dict.fromkeys(rows["case_memory"]) if name != "device"]
    counts = [f"{count:,.0f}" for count in sorted(rows["case_count"].unique())]
    rows = rows.assign(addresses=rows["case_count"].map(lambda count: f"{count:,.0f}"))
    marks = alt.Chart().mark_point(filled=True, size=70, yOffset=MARK_PX)
    marks = marks.encode(
        x=alt.X("reads_per_us:Q", title="million reads per second", scale=log_scale()),
        color=colour("addresses", counts, alt.Legend(title="addresses")),
        opacity=faded_if_stale(),
    )
    description = (
        f"{facts.study.title}: rate of independent reads by kind of memory and number of addresses."
    )
    drawing = row_chart("case_memory", [*kinds, "device"], marks)
    return Chart(drawing, rows, description, BASIS_COLUMNS)


def _pools(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """The rate over the size of the pool, a line for each size of a row."""
    if rows.empty:
        return None
    x = alt.X("pool_gib:Q", title="pool, GiB", scale=alt.Scale(type="log", base=2, nice=False))
    y = alt.Y("rate:Q", title="payload, GB/s")
    description = (
        f"{facts.study.title}: payload rate of rows at random places over the size of the pool, a"
        " line for each size of a row."
    )
    select = Select("hints", "loads")
    return _lines(rows, x, y, "row", ROWS, description, ["hints"], [select])


def _lines(
    rows: pd.DataFrame,
    x: alt.X,
    y: alt.Y,
    line: str,
    order: Sequence[str],
    description: str,
    by: Sequence[str] = (),
    selects: Sequence[Select] = (),
) -> Chart:
    drawing, rows = line_chart(rows, x, y, line, order, by=["machine", *by])
    return Chart(drawing, rows, description, {line: line, **BASIS_COLUMNS}, selects)


def _binary(kib: float) -> str:
    return f"{kib / 1024:.0f} MiB" if kib >= 1024 else f"{kib:.0f} KiB"
