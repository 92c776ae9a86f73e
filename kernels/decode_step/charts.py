"""Charts of this study: a decode step as a stack of its parts, by operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import altair as alt
import numpy as np

from analysis.api.charts import Chart, Select, StudyFacts, part_chart, part_rows
from analysis.api.quantities import quantity
from analysis.api.study import parse_case

DRAWN: Final = (
    *("no_fetch", "sglang_hisparse", "vllm_hisparse_roomy"),
    *("table_spread", "few_blocks", "packed_on_request"),
)
"""Operators in the picture. vLLM's default table would hide the differences of all others."""
START: Final = "1 request, 60 % hits"


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`parts`: fetch, attention and products of a step, in line, from the large pool."""
    return {"parts": parts(facts)}


def parts(facts: StudyFacts) -> Chart | None:
    """A stacked bar an operator, for one batch and hit rate at a time."""
    rows = part_rows(facts)
    cases = [parse_case(case) for case in rows["case"]]
    usual = [
        (case["schedule"], case["pool_mib"], case["width"]) == ("inline", 16384, 7168)
        for case in cases
    ]
    batches = [_batch(int(case["requests"]), int(case["hits"])) for case in cases]
    rows = rows.assign(batch=batches)
    rows = rows[np.array(usual, bool) & rows["variant"].isin(DRAWN)]
    rows = rows.assign(
        time=[quantity(seconds, "s") for seconds in rows["seconds"]],
        all_parts=[quantity(seconds, "s") for seconds in rows["whole"]],
    )
    x = alt.X("ms:Q", title="all layers of a step, ms", stack="zero")
    rows = rows.assign(ms=rows["seconds"] * 1e3)
    what = f"{facts.study.title}: fetch, attention and products of all layers, by operator."
    columns = {"variant": "variant", "batch": "batch", "time": "time", "state": "state"}
    chart = part_chart(facts, rows, x, what, columns, order=DRAWN, figure="all_parts")
    return chart and replace(chart, selects=[Select("batch", "batch", START)])


def _batch(requests: int, hits: int) -> str:
    return f"{requests} request{'s' if requests > 1 else ''}, {hits} % hits"
