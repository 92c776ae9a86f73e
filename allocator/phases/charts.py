"""Charts of the allocators: against PyTorch by pattern, and single operations."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from allocator.pattern_charts import heat
from analysis.api.charts import (
    Chart,
    Select,
    StudyFacts,
    dot_chart,
    fresh_figures,
    log_scale,
    present,
    si_axis,
)
from analysis.api.quantities import ratio

PERCENTILES: Final = {"latency_p50": "50 %", "latency_p99": "99 %", "latency_p999": "99.9 %"}
TIMED: Final = ("torch_caching", "p1_exact_cache", "p4_final", "p5_dropin", "cuda_malloc_async")
"""Variants whose single operations are compared."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`heat`, `journey` and `latency`, as far as measured."""
    return {"heat": heat(facts), "journey": journey(facts), "latency": latency(facts)}


def journey(facts: StudyFacts) -> Chart | None:
    """The printed ratios and those measured at the same layer."""
    rows = []
    for claim in facts.study.claims:
        test, layer = claim.tests[0] if claim.tests else None, "pattern=storage."
        if test is None or test.kind != "speedup" or not test.of.startswith("published_"):
            continue
        if len(claim.tests) > 1 or not test.case.startswith(layer):
            continue
        phase = facts.study.variant(test.of).title.removeprefix("In Python: ")
        row = f"{phase}: {test.case.removeprefix(layer)}"
        for found in facts.verdicts.by_claim.get(claim.id, []):
            called = facts.inputs.called(found.machine)
            rows += [(row, "printed", found.published), (row, called, found.measured)]
    table = pd.DataFrame(rows, columns=["phase", "source", "ratio"])
    table = table.dropna(subset="ratio").drop_duplicates(["phase", "source"])
    return dot_chart(
        table.assign(label=table["ratio"].map(ratio)),
        alt.X("ratio:Q", scale=log_scale(), title="PyTorch's time over the phase's"),
        "phase",
        [],
        "PyTorch's time over that of each phase in Python.",
        {"phase": "phase", "source": "source", "label": "ratio"},
        by="source",
    )


def latency(facts: StudyFacts) -> Chart | None:
    """Times of single operations by percentile."""
    table = fresh_figures(facts, *PERCENTILES)
    table = table[table["variant"].isin(TIMED)]
    table = table.assign(share=table["metric"].map(PERCENTILES))
    return dot_chart(
        table.sort_values(["pattern", "metric"]),
        alt.X("median:Q", scale=log_scale(), axis=si_axis("s"), title="time of an operation"),
        "variant",
        present(TIMED, table["variant"]),
        "times of single operations by the share that take no longer.",
        {"variant": "variant", "pattern": "pattern", "share": "faster operations", "short": "time"},
        [Select("pattern", "pattern")],
        by="share",
        names=list(PERCENTILES.values()),
        legend="share of operations that are faster",
        name="title",
    )
