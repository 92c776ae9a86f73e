"""Chart of this study: the allocator's share of a step."""

from __future__ import annotations

import altair as alt

from analysis.api.charts import Chart, StudyFacts, dot_chart, fresh_figures, present
from analysis.api.quantities import percent


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`share`: time in the allocator over host time; a row a case, a colour an allocator."""
    titles = [variant.title for variant in facts.study.subjects]
    rows = fresh_figures(facts, "allocation_share")
    rows = rows[rows["title"].isin(titles)]
    case = rows["work"].astype(str).str.replace("_", " ")
    share = dot_chart(
        rows.assign(row=case, label=rows["median"].map(percent)),
        alt.X("median:Q", title="share of host time", axis=alt.Axis(format="%")),
        "row",
        [],
        "share of host time, by case and allocator.",
        {"title": "allocator", "work": "case", "label": "median", "interval": "interval"},
        by="title",
        names=present(titles, rows["title"]),
        interval=("ci_low", "ci_high"),
    )
    return {"share": share}
