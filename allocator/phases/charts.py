"""Chart of the allocators: against PyTorch by pattern."""

from __future__ import annotations

from allocator.pattern_charts import speeds
from analysis.api.charts import Chart, StudyFacts

PHASES = {
    "p1_exact_cache": "first: exact sizes",
    "p3_block_pool": "third: segments",
    "p4_final": "fourth: streams and limits",
    "p5_dropin": "fifth: PyTorch's features",
}
"""Phases that are drawn, and their names."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`speeds`, if it is measured."""
    return {"speeds": speeds(facts, PHASES)}
