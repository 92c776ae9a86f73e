"""Charts of this study: a decode step as a stack of its parts, by operator."""

from __future__ import annotations

from typing import Final

import altair as alt

from analysis.api.charts import PART_WORDS, Chart, Select, StudyFacts, part_chart, part_rows
from analysis.api.study import parse_case

DRAWN: Final = (
    *("no_fetch", "sglang_hisparse", "vllm_hisparse_roomy"),
    *("table_spread", "few_blocks", "packed_on_request", "both_on_request"),
)
"""Operators in the picture. vLLM's default table would hide the differences of all others."""
START: Final = "1 request, 60 % hits"


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`parts`: fetch, attention and products of a step, in line, from the large pool; a stacked bar
    an operator, for one batch and hit rate at a time."""
    rows = part_rows(facts)
    cases = [parse_case(case) for case in rows["case"]]
    keys = [(case["schedule"], case["pool_mib"], case["width"]) for case in cases]
    batches = [_batch(int(case["requests"]), int(case["hits"])) for case in cases]
    place = [1000 * int(case["requests"]) - int(case["hits"]) for case in cases]
    rows = rows.assign(batch=batches, ms=rows["seconds"] * 1e3, place=place)
    rows = rows.loc[[key == ("inline", 16384, 7168) for key in keys]]
    rows = rows.sort_values("place", kind="stable").drop(columns="place")
    chart = part_chart(
        facts,
        rows[rows["variant"].isin(DRAWN)],
        alt.X("ms:Q", title="all layers of a step, ms"),
        "fetch, attention and products of all layers, by operator.",
        {"batch": "batch", **PART_WORDS},
        [Select("batch", "batch", START)],
        order=DRAWN,
    )
    return {"parts": chart}


def _batch(requests: int, hits: int) -> str:
    return f"{requests} request{'s' if requests > 1 else ''}, {hits} % hits"
