"""The table of the page: the seventh phase beside allocators that packages ship."""

from __future__ import annotations

from typing import Final

from allocator.shipped_table import shipped_table
from analysis.api.charts import PageTable, StudyFacts

OTHERS: Final = ("torch_caching", "torch_expandable", "cuda_malloc_async", "rmm_pool")
PAIRS: Final = {"hot_pair": "pair of 4 KiB", "random_pair": "random pair of up to 1 MiB"}
RESERVED: Final = {
    "growing_batch": "reserved, growing batch",
    "sawtooth": "reserved, rising and falling",
}
"""Titles of columns by pattern."""


def shipped(facts: StudyFacts) -> PageTable:
    """Times of pairs and reserved memory, of ours and of shipped allocators."""
    return shipped_table(facts, "p7_ordered", OTHERS, PAIRS, RESERVED)


TABLES: Final = {"shipped": shipped}
