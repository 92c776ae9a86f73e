"""Chart of this study: components of a write's time."""

from __future__ import annotations

import altair as alt

from analysis.api.charts import Chart, Select, StudyFacts, part_chart, part_rows
from analysis.api.study import parse_case


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`parts`: components of a write, stacked, for one number of threads."""
    rows = part_rows(facts)
    threads = [parse_case(case)["threads"] for case in rows["case"]]
    rows = rows.assign(ns=rows["seconds"] * 1e9, threads=threads).sort_values("threads")
    x, what = alt.X("ns:Q", title="ns per write"), "calls of the provider, and our own code."
    chart = part_chart(facts, rows, x, what, selects=[Select("threads", "threads")])
    return {"parts": chart}
