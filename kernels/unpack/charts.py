"""Chart of this study: parts of the host's time."""

from __future__ import annotations

import altair as alt

from analysis.api.charts import Chart, StudyFacts, part_chart, part_rows
from analysis.api.quantities import quantity
from analysis.api.study import parse_case


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`parts`: parts of the call in the headline case, in µs per chunk."""
    rows = part_rows(facts)
    rows = rows[(rows["case"] == facts.study.headline) & (rows["role"] == "step")]
    chunks = int(parse_case(facts.study.headline)["chunks"])
    rows = rows.assign(
        us=rows["seconds"] / chunks * 1e6,
        time=[quantity(seconds / chunks, "s") for seconds in rows["seconds"]],
        all_parts=[quantity(whole / chunks, "s") for whole in rows["whole"]],
    )
    us = alt.X("us:Q", title="host time per chunk, µs")
    return {"parts": part_chart(facts, rows, us, "host time of a chunk by call, stacked.")}
