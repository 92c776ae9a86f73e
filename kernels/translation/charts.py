"""Charts of this study: rates over the number of addresses and over the size of a pool."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    Chart,
    StudyFacts,
    dash_legend,
    finish_rows,
    line_colour,
    line_panels,
    named,
    named_rows,
    panels,
    stale_shape,
    tooltip,
)

STREAMING: Final = {"rows": "plain", "rows_streaming": "streaming hints"}


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
    ).sort_values("case_row_bytes")


def _reach(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """One panel per machine, one line per stride: the rate over the number of addresses."""
    y = alt.Y("reads_per_us:Q", title="million reads per second", scale=alt.Scale(type="log"))
    return _over_count(facts, rows, y, "rate of independent reads")


def _latency(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """The same for the time of a read on which the next one depends."""
    y = alt.Y("ns:Q", title="time of a read, ns", scale=alt.Scale(zero=False))
    return _over_count(facts, rows, y, "time of dependent reads")


def _over_count(facts: StudyFacts, rows: pd.DataFrame, y: alt.Y, what: str) -> Chart | None:
    if rows.empty:
        return None
    x = alt.X("case_count:Q", title="addresses", scale=alt.Scale(type="log", base=2, nice=False))
    names = list(dict.fromkeys(rows["addresses"]))
    colour = line_colour("addresses", names, "distance of the addresses")
    description = (
        f"{facts.study.title}: {what} over the number of addresses, a line for each distance"
        f" between them, for {len(facts.machines)} machines."
    )
    return line_panels(facts, rows, alt.Chart().encode(x=x, y=y, color=colour), description)


def _kinds(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """One panel per machine, one row per kind of memory: the rate by number of addresses."""
    if rows.empty:
        return None
    kinds = [name for name in dict.fromkeys(rows["case_memory"]) if name != "device"]
    counts = [f"{count:,.0f}" for count in sorted(rows["case_count"].unique())]
    rows = rows.assign(addresses=rows["case_count"].map(lambda count: f"{count:,.0f}"))
    row = named_rows("case_memory", [*kinds, "device"])
    marks = (
        alt.Chart()
        .mark_point(filled=True, size=70, cursor="pointer")
        .encode(
            x=alt.X(
                "reads_per_us:Q", title="million reads per second", scale=alt.Scale(type="log")
            ),
            y=row,
            color=line_colour("addresses", counts, "addresses"),
            shape=stale_shape(),
            href="href:N",
            tooltip=tooltip(facts),
        )
    )
    description = (
        f"{facts.study.title}: rate of independent reads by kind of memory and number of"
        f" addresses, for {len(facts.machines)} machines."
    )
    return finish_rows(panels(named(row, marks), rows), description, margin=150)


def _pools(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """One panel per machine, one line per row size: the rate over pool size, dashed with hints."""
    if rows.empty:
        return None
    sizes = list(dict.fromkeys(rows["row"]))
    base = alt.Chart().encode(
        x=alt.X("pool_gib:Q", title="pool, GiB", scale=alt.Scale(type="log", base=2, nice=False)),
        y=alt.Y("rate:Q", title="payload, GB/s"),
        color=line_colour("row", sizes, "row"),
        strokeDash=alt.StrokeDash(
            "hints:N",
            sort=list(STREAMING.values()),
            legend=dash_legend("top"),
        ),
    )
    description = (
        f"{facts.study.title}: payload rate of rows at random places over pool size, a line"
        f" for each row size, with and without streaming hints, for"
        f" {len(facts.machines)} machines."
    )
    return line_panels(facts, rows, base, description)


def _binary(kib: float) -> str:
    return f"{kib / 1024:.0f} MiB" if kib >= 1024 else f"{kib:.0f} KiB"
