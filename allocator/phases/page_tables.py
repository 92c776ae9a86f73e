"""Tables of the page: the fifth phase beside shipped allocators, from C++ and from Python."""

from __future__ import annotations

from typing import Final

from allocator.shipped_table import shipped_table
from analysis.api.charts import PageTable, StudyFacts

PAIRS: Final = {
    "hot_pair": "pair of 4 KiB",
    "hot_large_pair": "pair of 64 MiB",
    "random_pair": "random pair of up to 1 MiB",
}
"""Titles of columns by pattern."""


def shipped(facts: StudyFacts) -> PageTable:
    """Times of pairs in one C++ loop."""
    return shipped_table(facts, "p5_dropin", ["torch_caching", "cuda_malloc_async"], PAIRS)


def shipped_in_python(facts: StudyFacts) -> PageTable:
    """Times of pairs in one Python loop."""
    names = ("hot_pair", "random_pair")
    pairs = {f"python.{name}": f"{PAIRS[name]}, from Python" for name in names}
    return shipped_table(facts, "p4_final", ["torch_raw"], pairs)


TABLES: Final = {"shipped": shipped, "shipped_in_python": shipped_in_python}
