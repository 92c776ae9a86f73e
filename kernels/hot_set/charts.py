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

from .cells import FETCH_ALL, SCATTERED, USUAL_KEYS
from .policy_chart import policies

NAMES: Final = {
    "v3_block_per_request": "block a request",
    "v4_rows_in_flight": "rows in flight",
    "v5_several_blocks": "cluster a request",
    "both_on_request": "SMs and CPU",
    FETCH_ALL: "misses alone",
}
"""Variants drawn over the share of misses, and the names of their lines."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`misses`: host time over the misses of a step; `policies`: bytes fetched beyond the
    optimum."""
    return {"misses": misses(facts), "policies": policies(facts)}


def misses(facts: StudyFacts) -> Chart | None:
    """Host time over the share of rows that is missing, for one batch and pool at a time."""
    points = facts.points
    rows = points[points["variant"].isin(NAMES) & points["seconds"].notna()]
    rows = rows[(rows["metric"] == "host_time") & (rows["case_layout"] == SCATTERED)]
    rows = rows[[parse_case(case).keys() == USUAL_KEYS for case in rows["case"]]]
    if rows.empty:
        return None
    rows = rows.sort_values(["case_pool_mib", "case_requests"])
    rows = rows.assign(
        name=rows["variant"].map(NAMES),
        pool=[f"{mib / 1024:.3g} GiB" for mib in rows["case_pool_mib"]],
        batch=rows["case_requests"].astype(int),
        missing=rows["case_misses"] / (rows["case_requests"] * rows["case_topk"]),
    )
    rows = rows.drop_duplicates(["machine", "pool", "batch", "name", "missing"])
    headline = parse_case(facts.study.headline)
    x = alt.X("missing:Q", title="rows that are missing", axis=alt.Axis(format="~%"))
    y = alt.Y("seconds:Q", title="host time", axis=si_axis("s"), scale=log_scale())
    selects = [Select("batch", "requests", headline["requests"])]
    selects.append(Select("pool", "pool", f"{int(headline['pool_mib']) / 1024:.3g} GiB"))
    drawing, rows = line_chart(
        rows, x, y, "name", list(NAMES.values()), by=["machine", "pool", "batch"]
    )
    what = f"{facts.study.title}: host time over the share of rows that are missing in a step."
    return Chart(
        drawing, rows.sort_values(["case_pool_mib", "batch"]), what, BASIS_COLUMNS, selects
    )
