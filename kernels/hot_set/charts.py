"""Charts of this study: time over the misses of a step, and the bytes that policies fetch."""

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
    fresh_figures,
    line_chart,
    log_scale,
    si_axis,
)
from analysis.api.quantities import binary, percent, quantity
from analysis.api.study import parse_case

from .cells import FETCH_ALL, PUBLISHED_WAY, SCATTERED, USUAL_KEYS, seconds_per_byte

NAMES: Final = {
    PUBLISHED_WAY: "block a request",
    "table_spread": "table of slots",
    "lookup_ready": "look-up ready",
    "packed_on_request": "CPU packs",
    FETCH_ALL: "misses alone",
}
"""Variants drawn over the share of misses, and the names of their lines: the published way, the
fastest step for few and for many misses from each pool, and the limit."""
OPTIMUM: Final = "belady"
COMPARED: Final = {"lru": "LRU", "clock": "CLOCK", "random": "random"}
"""Policies beside the optimum, as the page calls them."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`misses`: host time over the misses of a step; `policies`: bytes fetched beyond the
    optimum."""
    return {"misses": misses(facts), "policies": policies(facts)}


def misses(facts: StudyFacts) -> Chart | None:
    """Host time of one request over the share of rows that is missing, for one pool at a time."""
    rows, headline = facts.points, parse_case(facts.study.headline)
    rows = rows[rows["variant"].isin(NAMES) & (rows["metric"] == "host_time")]
    rows = rows[(rows["case_layout"] == SCATTERED) & rows["seconds"].notna()]
    rows = rows[rows["case_requests"] == headline["requests"]]
    rows = rows.loc[[parse_case(case).keys() == {*USUAL_KEYS} for case in rows["case"]]]
    rows = rows.assign(
        name=rows["variant"].map(NAMES),
        pool=(rows["case_pool_mib"] * 2**20).map(binary),
        missing=rows["case_misses"] / (rows["case_requests"] * rows["case_topk"]),
    ).sort_values("case_pool_mib")
    return line_chart(
        rows.drop_duplicates(["machine", "pool", "name", "missing"]),
        alt.X("missing:Q", title="rows that are missing", axis=alt.Axis(format="~%")),
        alt.Y("seconds:Q", title="host time of a request", axis=si_axis("s"), scale=log_scale()),
        "name",
        list(NAMES.values()),
        "host time over the share of rows that are missing in a step.",
        BASIS_COLUMNS,
        [Select("pool", "pool", binary(int(headline["pool_mib"]) * 2**20))],
    )


def policy_table(facts: StudyFacts) -> pd.DataFrame:
    """A row for each machine, trace, number of slots and policy, where all were simulated: `beyond`
    is the share of bytes beyond the optimum's, `label` has it with the time of these bytes in a
    step."""
    rows = fresh_figures(facts, "fetched")
    policy = {one.name: one.options.get("policy") for one in facts.study.variants}
    rows = rows.assign(policy=rows["variant"].map(policy), slots=rows["slots"].astype(int))
    key = ["machine", "slots", "trace"]
    optimum = rows.loc[(rows["policy"] == OPTIMUM) & (rows["median"] > 0), [*key, "median"]]
    rows = rows[rows["policy"].isin(COMPARED)].merge(optimum, on=key, suffixes=("", "_least"))
    rows = rows[rows.groupby(key)["policy"].transform("nunique") == len(COMPARED)]
    more = rows["median"] - rows["median_least"]
    seconds = more * rows["machine"].map(seconds_per_byte(facts)).astype(float)
    texts = zip(more / rows["median_least"], seconds, strict=True)
    rows = rows.assign(
        policy=rows["policy"].map(COMPARED),
        beyond=more / rows["median_least"],
        label=[", ".join(filter(None, (percent(b), quantity(s, "s")))) for b, s in texts],
    )
    return rows.sort_values(key)


def policies(facts: StudyFacts) -> Chart | None:
    """Bytes beyond the optimum's by trace, a dot a policy."""
    table = policy_table(facts)
    slots = sorted(int(count) for count in table["slots"].unique())
    return dot_chart(
        table,
        alt.X("beyond:Q", title="bytes fetched beyond the optimum's", axis=alt.Axis(format="~%")),
        "trace",
        [],
        "bytes that policies of eviction fetch beyond the optimum's.",
        {"trace": "trace", "policy": "policy", "label": "beyond the optimum", "short": "bytes"},
        [Select("slots", "slots", slots[len(slots) // 2] if slots else None)],
        by="policy",
        names=list(COMPARED.values()),
    )
