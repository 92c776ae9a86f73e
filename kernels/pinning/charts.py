"""Charts of this study: pinning beside the waits of a neighbour, and its parts."""

from __future__ import annotations

from typing import Final

import altair as alt

from analysis.api.charts import (
    Chart,
    Select,
    StudyFacts,
    dot_chart,
    figures,
    log_scale,
    part_chart,
    part_rows,
    si_axis,
)
from analysis.api.quantities import binary

WAITS: Final = {
    "host_time": "until pinned",
    "call_worst": "longest call",
    "unpin_worst": "longest call, unpinning",
}
"""Metrics in words; calls are those of another process."""
OTHER_CALLS_MIB: Final = 512
"""Pinned while every kind of call is repeated."""
COLUMNS: Final = {
    **{name: name for name in ("variant", "case", "what")},
    "short": "time",
    "state": "state",
}


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`waits` and `parts`, as far as measured."""
    parts = part_rows(facts)
    parts = parts[parts["case"] == facts.study.headline]
    time = alt.X("seconds:Q", title="host time", axis=si_axis("s"))
    what = "time of touching and of registering, stacked."
    return {
        "waits": waits(facts),
        "parts": part_chart(facts, parts, time, what, figure=""),
    }


def waits(facts: StudyFacts) -> Chart | None:
    """A row a variant with its usual chunks and threads: the time to pin and the longest calls of
    another process."""
    rows = figures(facts, *WAITS).sort_values("mib", ascending=False)
    rows = rows[(rows["beside"] == "process") & (rows["calls"] == "malloc")]
    subjects = [variant.name for variant in facts.study.subjects]
    rows = rows[(rows["mib"] != OTHER_CALLS_MIB) & rows["variant"].isin(subjects)]
    rows = rows[rows["chunk_mib"].isna() & rows["threads"].isna()]
    return dot_chart(
        rows.assign(what=rows["metric"].map(WAITS), size=(rows["mib"] * 2**20).map(binary)),
        alt.X("median:Q", title="time", scale=log_scale(), axis=si_axis("s")),
        "variant",
        facts.study.variant_names,
        "time to pin and longest CUDA call of another process, by variant.",
        COLUMNS,
        [Select("size", "size")],
        by="what",
        names=list(WAITS.values()),
        name="title",
    )
