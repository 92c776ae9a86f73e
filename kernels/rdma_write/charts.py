"""Charts of this study: the ladder beside the write-up's, and components of a write's time."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    Chart,
    Select,
    StudyFacts,
    dot_chart,
    log_scale,
    part_chart,
    part_rows,
)
from analysis.api.study import parse_case

WRITE_UP: Final = "write-up"


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`ladder` and `parts`; None for a chart without data."""
    return {"ladder": ladder(facts), "parts": parts(facts)}


def ladder(facts: StudyFacts) -> Chart | None:
    """Rate of each step relative to the first, in the write-up and on every machine."""
    titles = {variant.name: variant.title for variant in facts.study.with_role("step", "beyond")}
    points = facts.points
    points = points[points["seconds"].notna() & (points["state"] != "published")]
    points = points[points["case"] == facts.study.headline]
    called = points["machine"].map(facts.inputs.called)
    printed = [(WRITE_UP, row.variant, row.seconds) for row in facts.published]
    columns = ["source", "variant", "seconds"]
    table = pd.concat(
        [points.assign(source=called)[columns], pd.DataFrame(printed, columns=columns)]
    )
    first = table[table["variant"] == next(iter(titles))].set_index("source")["seconds"]
    times = (table["source"].map(first) / table["seconds"]).astype(float)
    table = table.assign(
        times=times, name=table["variant"].map(titles), factor=times.map("{:.2f}×".format)
    )
    return dot_chart(
        table.dropna(subset=["times", "name"]),
        alt.X("times:Q", title="rate relative to the first step", scale=log_scale()),
        "variant",
        list(titles),
        "rate of each step relative to the first, published and measured.",
        {"variant": "variant", "source": "machine", "factor": "relative to the first"},
        by="source",
        name="name",
    )


def parts(facts: StudyFacts) -> Chart | None:
    """Components of a write, stacked, for one number of threads."""
    rows = part_rows(facts)
    threads = [parse_case(case)["threads"] for case in rows["case"]]
    rows = rows.assign(ns=rows["seconds"] * 1e9, threads=threads).sort_values("threads")
    x, what = alt.X("ns:Q", title="ns per write"), "calls of the provider, and our own code."
    return part_chart(facts, rows, x, what, selects=[Select("threads", "threads")])
