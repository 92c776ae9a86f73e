"""Chart of this study: rates over the number of addresses."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import BASIS_COLUMNS, Chart, StudyFacts, line_chart, log_scale
from analysis.api.quantities import binary

ADDRESSES: Final = ("4 KiB", "64 KiB", "64 KiB, ascending", "512 KiB", "2 MiB")
"""Distances between addresses that are drawn."""
DOUBLING: Final = alt.Scale(type="log", base=2, nice=False)


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`reach`, if it is measured."""
    return {"reach": reach(facts.points[facts.points["seconds"].notna()])}


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
