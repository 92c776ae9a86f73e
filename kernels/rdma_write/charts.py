"""Charts of this study: rates over threads, the ladder beside the write-up's, and components
of a write's time."""

from __future__ import annotations

from typing import Final

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import (
    BASIS_COLUMNS,
    Chart,
    Select,
    StudyFacts,
    dot_chart,
    line_chart,
    log_scale,
    part_chart,
    part_rows,
)
from analysis.api.study import parse_case

WRITE_UP: Final = "write-up"
SHOWN_STEPS: Final = 5


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`scaling`, `ladder` and `parts`; None for a chart without data."""
    points = facts.points
    points = points[points["seconds"].notna() & (points["state"] != "published")]
    return {
        "scaling": scaling(facts, points),
        "ladder": ladder(facts, points),
        "parts": parts(facts),
    }


def scaling(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """Writes per second over threads in the headline case, by the first and the last steps."""
    for key, value in parse_case(facts.study.headline).items():
        if key != "threads":
            points = points[points[f"case_{key}"] == value]
    steps = [v.name for v in facts.study.with_role("step") if v.name in set(points["variant"])]
    places = np.linspace(0, len(steps) - 1, SHOWN_STEPS).astype(int) if steps else ()
    axis = alt.Axis(values=sorted(points["case_threads"].unique()))
    scale = alt.Scale(type="log", base=2)
    mpps = 1e-6 / points["seconds"]
    return line_chart(
        points.assign(mpps=mpps, written=mpps.map("{:.3g} Mpps".format)),
        alt.X("case_threads:Q", title="threads per side", scale=scale, axis=axis),
        alt.Y("mpps:Q", title="writes, Mpps", scale=alt.Scale(zero=True)),
        "variant",
        [steps[place] for place in sorted({*places})],
        "millions of writes per second over threads.",
        {**BASIS_COLUMNS, "written": "rate"},
    )


def ladder(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """Rate of each step relative to the first, in the write-up and on every machine."""
    titles = {variant.name: variant.title for variant in facts.study.with_role("step", "beyond")}
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
