"""Charts of this study: what the method says of differences that cannot be there, and the cost of a
copy whose source is in a core's cache."""

from __future__ import annotations

import altair as alt
import pandas as pd

from analysis.api.charts import (
    MARK_PX,
    Chart,
    Select,
    StudyFacts,
    colour,
    line_chart,
    log_scale,
    row_chart,
    samples_addresses,
    si_axis,
)
from analysis.api.quantities import INTERVAL, SAME_WITHIN, ratio, ratio_interval

WRITERS = {
    "copy_from_memory": "nobody",
    "copy_written_here": "the thread that copies",
    "copy_written_elsewhere": "a core that now sleeps",
}


CALLED = {"same": "same", "faster": "different", "slower": "different", "unclear": "undecided"}
REPEATS = {
    "variant": "variant",
    "against": "against",
    "case": "case",
    "clock": "clock",
    "short": "ratio",
    "interval": INTERVAL,
    "verdict": "called",
}


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`agreement`: ratios between repeats of one program; `cached`: device time over size, a line
    for each writer of the source."""
    return {"agreement": agreement(facts), "cached": cached(facts)}


def agreement(facts: StudyFacts) -> Chart | None:
    """Ratios between repeats of one program in this study; None where there are none."""
    table = facts.table("repeats").reset_index(drop=True)
    if table.empty:
        return None
    ends = zip(table["ci_low"], table["ci_high"], strict=True)
    table = table.assign(
        clock=[facts.study.metrics[metric].label for metric in table["metric"]],
        called=table["verdict"].map(CALLED),
        short=table["ratio"].map(ratio),
        interval=[ratio_interval(*pair) for pair in ends],
        href=samples_addresses(table),
    )
    legend = alt.Legend(title=None)
    x = alt.X("ratio:Q", title="ratio of times", scale=alt.Scale(zero=False))
    base = alt.Chart().encode(
        x=x, color=colour("called", [*dict.fromkeys(CALLED.values())], legend)
    )
    band = alt.Chart(pd.DataFrame({"low": [1 - SAME_WITHIN], "high": [1 + SAME_WITHIN]}))
    drawing = row_chart(
        "case",
        [*dict.fromkeys(case.id for variant in facts.study.variants for case in variant.cases)],
        base.mark_rule(strokeWidth=1.5, yOffset=MARK_PX).encode(x="ci_low:Q", x2="ci_high:Q"),
        base.mark_point(filled=True, size=40, yOffset=MARK_PX),
        through=[band.mark_rect(style="band", opacity=0.13).encode(x="low:Q", x2="high:Q")],
    )
    description = (
        f"{facts.study.title}: ratios of times between two entries of one program, each with its"
        f" {INTERVAL}; the correct ratio is 1."
    )
    return Chart(drawing, table, description, REPEATS, [Select("clock", "clock")])


def cached(facts: StudyFacts) -> Chart | None:
    """Device time over size, a line for each writer of the source."""
    points = facts.points
    points = points[points["variant"].isin(WRITERS) & (points["metric"] == "gpu_time")]
    points = points[points["seconds"].notna()]
    if points.empty:
        return None
    table = points.assign(
        writer=points["variant"].map(WRITERS),
        kib=[f"{b / 1024:g} KiB" for b in points["case_bytes"]],
    )
    axis = alt.Axis(
        values=sorted(set(table["case_bytes"])), labelExpr="datum.value / 1024 + ' KiB'"
    )
    x = alt.X("case_bytes:Q", title="size", scale=log_scale(), axis=axis)
    y = alt.Y("seconds:Q", title="time", scale=log_scale(), axis=si_axis("s"))
    drawing, table = line_chart(table, x, y, "writer", list(WRITERS.values()), intervals=True)
    columns = {"writer": "last written by", "kib": "size", "label": "figure", "interval": INTERVAL}
    description = f"{facts.study.title}: time of a copy by the last writer of its source."
    return Chart(drawing, table, description, columns)
