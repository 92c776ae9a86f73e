"""Charts of this study: time over the misses of a step, and the bytes that policies fetch."""

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

from .cells import FETCH_ALL, PUBLISHED_WAY, SCATTERED, USUAL_KEYS, pool_text
from .policy_chart import policies

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
    """`misses`: host time over the misses of a step; `policies`: bytes fetched beyond the
    optimum."""
    return {"misses": misses(facts), "policies": policies(facts)}


def misses(facts: StudyFacts) -> Chart | None:
    """Host time of one request over the share of rows that is missing, for one pool at a time."""
    points = facts.points
    rows = points[points["variant"].isin(NAMES) & points["seconds"].notna()]
    headline = parse_case(facts.study.headline)
    rows = rows[(rows["metric"] == "host_time") & (rows["case_layout"] == SCATTERED)]
    rows = rows[rows["case_requests"] == headline["requests"]]
    rows = rows[[parse_case(case).keys() == USUAL_KEYS for case in rows["case"]]]
    if rows.empty:
        return None
    rows = rows.assign(
        name=rows["variant"].map(NAMES),
        pool=[pool_text(mib) for mib in rows["case_pool_mib"]],
        missing=rows["case_misses"] / (rows["case_requests"] * rows["case_topk"]),
    )
    rows = rows.sort_values("case_pool_mib").drop_duplicates(["machine", "pool", "name", "missing"])
    x = alt.X("missing:Q", title="rows that are missing", axis=alt.Axis(format="~%"))
    y = alt.Y("seconds:Q", title="host time of a request", axis=si_axis("s"), scale=log_scale())
    drawing, rows = line_chart(rows, x, y, "name", list(NAMES.values()), by=["machine", "pool"])
    what = f"{facts.study.title}: host time over the share of rows that are missing in a step."
    pool = Select("pool", "pool", pool_text(int(headline["pool_mib"])))
    return Chart(drawing, rows, what, BASIS_COLUMNS, [pool])
