"""Charts of this study: what the method says of differences that cannot be there, and the cost of a
copy whose source is in a core's cache."""

from __future__ import annotations

from typing import Final

import altair as alt

from analysis.api.charts import (
    Chart,
    Select,
    StudyFacts,
    band,
    dot_chart,
    line_chart,
    log_scale,
    samples_addresses,
    si_axis,
)
from analysis.api.quantities import INTERVAL, SAME_WITHIN, ratio, ratio_interval

WRITERS: Final = {
    "copy_from_memory": "nobody",
    "copy_written_here": "the thread that copies",
    "copy_written_elsewhere": "a core that now sleeps",
}
CALLED: Final = {
    "same": "same",
    "faster": "different",
    "slower": "different",
    "unclear": "undecided",
}


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`agreement`: ratios between repeats of one program; `cached`: device time over size, a line
    for each writer of the source."""
    return {"agreement": agreement(facts), "cached": cached(facts)}


def agreement(facts: StudyFacts) -> Chart | None:
    """Ratios between repeats of one program in this study; None where there are none."""
    table = facts.table("repeats")
    table = table.assign(
        clock=[facts.study.metrics[metric].label for metric in table["metric"]],
        called=table["verdict"].map(CALLED),
        short=table["ratio"].map(ratio),
        interval=[*map(ratio_interval, table["ci_low"], table["ci_high"])],
        href=samples_addresses(table),
    )
    cases = (case.id for variant in facts.study.variants for case in variant.cases)
    return dot_chart(
        table,
        alt.X("ratio:Q", title="ratio of times", scale=alt.Scale(zero=False)),
        "case",
        list(dict.fromkeys(cases)),
        "ratios of times between two entries of one program, each with its"
        f" {INTERVAL}; the correct ratio is 1.",
        {
            **{name: name for name in ("variant", "against", "case", "clock")},
            "short": "ratio",
            "interval": INTERVAL,
            "verdict": "called",
        },
        [Select("clock", "clock")],
        by="called",
        names=list(dict.fromkeys(CALLED.values())),
        interval=("ci_low", "ci_high"),
        through=[band("x", 1 - SAME_WITHIN, 1 + SAME_WITHIN)],
    )


def cached(facts: StudyFacts) -> Chart | None:
    """Device time over size, a line for each writer of the source."""
    points = facts.points
    points = points[points["variant"].isin(WRITERS) & (points["metric"] == "gpu_time")]
    points = points[points["seconds"].notna()]
    kib = [f"{size / 1024:g} KiB" for size in points["case_bytes"]]
    sizes = sorted(set(points["case_bytes"]))
    axis = alt.Axis(values=sizes, labelExpr="datum.value / 1024 + ' KiB'")
    return line_chart(
        points.assign(writer=points["variant"].map(WRITERS), kib=kib),
        alt.X("case_bytes:Q", title="size", scale=log_scale(), axis=axis),
        alt.Y("seconds:Q", title="time", scale=log_scale(), axis=si_axis("s")),
        "writer",
        list(WRITERS.values()),
        "time of a copy by the last writer of its source.",
        {"writer": "last written by", "kib": "size", "short": "GB/s", "interval": INTERVAL},
        intervals=True,
    )
