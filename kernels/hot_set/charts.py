"""The chart of this study: time over the misses of a step."""

from __future__ import annotations

from typing import Final

import altair as alt

from analysis.api.charts import (
    BASIS_COLUMNS,
    Chart,
    Select,
    StudyFacts,
    line_chart,
    log_scale,
    si_axis,
)
from analysis.api.study import parse_case

from .answers import PUBLISHED_WAY

FETCH_ALL: Final = "ceiling_misses_alone"
"""Fetches rows that are given, without any look-up."""
SCATTERED: Final = "scattered"
USUAL_KEYS: Final = ("requests", "topk", "slots", "misses", "pool_mib", "layout")
NAMES: Final = {
    PUBLISHED_WAY: "block a request",
    "table_spread": "table of slots",
    "lookup_ready": "look-up ready",
    "packed_on_request": "CPU packs",
    FETCH_ALL: "misses alone",
}
"""Variants drawn over the share of misses, and the names of their lines: the published way, the
fastest step for few and for many misses from each pool, and the limit."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`misses`: host time of one request over the share of rows that is missing, for one pool at a
    time."""
    rows, headline = facts.points, parse_case(facts.study.headline)
    rows = rows[rows["variant"].isin(NAMES) & (rows["metric"] == "host_time")]
    rows = rows[(rows["case_layout"] == SCATTERED) & rows["seconds"].notna()]
    rows = rows[rows["case_requests"] == headline["requests"]]
    rows = rows.loc[[parse_case(case).keys() == {*USUAL_KEYS} for case in rows["case"]]]
    rows = rows.assign(
        name=rows["variant"].map(NAMES),
        pool=rows["case_pool_mib"].map(_pool),
        missing=rows["case_misses"] / (rows["case_requests"] * rows["case_topk"]),
    ).sort_values("case_pool_mib")
    chart = line_chart(
        rows.drop_duplicates(["machine", "pool", "name", "missing"]),
        alt.X("missing:Q", title="rows that are missing", axis=alt.Axis(format="~%")),
        alt.Y("seconds:Q", title="host time of a layer", axis=si_axis("s"), scale=log_scale()),
        "name",
        list(NAMES.values()),
        "host time over the share of rows that are missing in a step.",
        BASIS_COLUMNS,
        [Select("pool", "pool", _pool(int(headline["pool_mib"])))],
    )
    return {"misses": chart}


def _pool(mib: float) -> str:
    return f"{mib / 1024:.3g} GiB" if mib >= 1024 else f"{mib:g} MiB"
