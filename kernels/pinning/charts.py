"""Charts of this study: pinning beside the waits of a neighbour, by variant and chunk."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    Chart,
    Select,
    StudyFacts,
    dot_chart,
    figures,
    line_chart,
    log_scale,
    part_chart,
    part_rows,
    si_axis,
)
from analysis.api.quantities import binary
from analysis.api.study import parse_case

WAITS: Final = {
    "host_time": "until pinned",
    "call_worst": "longest call",
    "unpin_worst": "longest call, unpinning",
}
"""Metrics in words; calls are those of another process."""
SHOWN_WAITS: Final = ("host_time", "call_worst")
"""Metrics of `waits`, in the order of its figures."""
OTHER_CALLS_MIB: Final = 512
"""Pinned while every kind of call is repeated."""
COLUMNS: Final = {
    **{name: name for name in ("variant", "case", "what")},
    "short": "time",
    "state": "state",
}


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`waits`, `parts` and `chunk_sizes`, as far as measured."""
    parts = part_rows(facts)
    parts = parts[parts["case"] == facts.study.headline]
    time = alt.X("seconds:Q", title="host time", axis=si_axis("s"))
    what = "time of touching and of registering, stacked."
    return {
        "waits": waits(facts),
        "parts": part_chart(facts, parts, time, what, figure=""),
        "chunk_sizes": chunk_sizes(facts),
    }


def times(facts: StudyFacts) -> pd.DataFrame:
    """Figures of WAITS beside another process that allocates; `what` is the metric in words."""
    rows = figures(facts, *WAITS)
    rows = rows[(rows["beside"] == "process") & (rows["calls"] == "malloc")]
    return rows.assign(what=rows["metric"].map(WAITS))


def waits(facts: StudyFacts) -> Chart | None:
    """A row a variant with its usual chunks and threads: the time to pin and the longest calls of
    another process."""
    rows = times(facts).sort_values("mib", ascending=False)
    steps = [variant.name for variant in facts.study.with_role("step")]
    rows = rows[(rows["mib"] != OTHER_CALLS_MIB) & rows["variant"].isin(steps)]
    rows = rows[rows["chunk_mib"].isna() & rows["threads"].isna()]
    rows = rows[rows["metric"].isin(SHOWN_WAITS)].assign(size=(rows["mib"] * 2**20).map(binary))
    both = rows.sort_values("metric", ascending=False).groupby(["machine", "case", "variant"])
    headline = int(parse_case(facts.study.headline)["mib"])
    return dot_chart(
        rows.assign(figure=both["short"].transform(" / ".join)),
        alt.X(
            "median:Q",
            title="time",
            scale=log_scale(),
            axis=si_axis("s", values=[1e-3, 1e-2, 0.1, 1, 10]),
        ),
        "variant",
        steps,
        "time to pin and longest CUDA call of another process, by variant.",
        COLUMNS,
        [Select("size", "size", binary(headline * 2**20))],
        by="what",
        names=[WAITS[name] for name in SHOWN_WAITS],
        name="title",
        figure="figure",
    )


def chunk_sizes(facts: StudyFacts) -> Chart | None:
    """Lines over the size of a chunk: the time to pin, and the longest calls."""
    rows = times(facts)
    size = parse_case(facts.study.headline)["mib"]
    rows = rows[(rows["variant"] == "chunks") & rows["threads"].isna() & (rows["mib"] == size)]
    rows = rows.fillna({"chunk_mib": facts.study.constants["chunk_mib"]})
    if rows["chunk_mib"].nunique() < 2:
        return None
    return line_chart(
        rows,
        alt.X("chunk_mib:Q", title="chunk, MiB", scale=alt.Scale(type="log", base=2)),
        alt.Y("median:Q", title="time", scale=log_scale(), axis=si_axis("s")),
        "what",
        list(WAITS.values()),
        "time to pin and longest calls of another process over the size of a chunk.",
        COLUMNS,
    )
