"""Charts of this study: rates over the number of addresses and over the size of a pool."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import BASIS_COLUMNS, Chart, Select, StudyFacts, line_chart, log_scale
from analysis.api.quantities import binary

STREAMING: Final = {"rows": "plain", "rows_streaming": "streaming hints"}
ADDRESSES: Final = ("4 KiB", "64 KiB", "64 KiB, ascending", "512 KiB", "2 MiB")
"""Distances between addresses that are drawn."""
ROWS: Final = ("128 B", "512 B", "656 B", "1024 B", "4096 B")
"""Sizes of rows that are drawn."""
MANY_ROWS: Final = 2048
DOUBLING: Final = alt.Scale(type="log", base=2, nice=False)


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`reach` and `pools`, as far as measured."""
    points = facts.points[facts.points["seconds"].notna()]
    return {"reach": reach(points), "pools": pools(points)}


def reach(points: pd.DataFrame) -> Chart | None:
    """The rate of independent reads over the number of addresses, a line for each distance between
    them."""
    rows = points[(points["variant"] == "independent_lines") & points["case_memory"].isna()]
    rows = rows.sort_values(["case_stride_kib", "case_order"], ascending=[True, False])
    order = rows["case_order"].map({"random": ""}).fillna(", ascending")
    rows = rows.assign(
        reads_per_us=1e-6 * rows["case_reads"] / rows["seconds"],
        addresses=(rows["case_stride_kib"] * 2**10).map(binary) + order,
    )
    counts = rows.groupby(["machine", "addresses"])["case_count"].transform("nunique")
    return line_chart(
        rows[counts > 1],
        alt.X("case_count:Q", title="addresses", scale=DOUBLING),
        alt.Y("reads_per_us:Q", title="million reads per second", scale=log_scale()),
        "addresses",
        ADDRESSES,
        "rate of independent reads over the number of addresses, a line for each distance between"
        " them.",
        {"addresses": "addresses", **BASIS_COLUMNS},
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
    return line_chart(
        rows,
        alt.X("pool_gib:Q", title="pool, GiB", scale=DOUBLING),
        alt.Y("rate:Q", title="payload, GB/s"),
        "row",
        ROWS,
        "payload rate of rows at random places over the size of the pool, a line for each size of"
        " a row.",
        {"row": "row", **BASIS_COLUMNS},
        [Select("hints", "loads")],
    )
