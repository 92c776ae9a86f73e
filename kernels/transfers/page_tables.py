"""The table of the page: when pinning pays."""

from __future__ import annotations

from typing import Final

import numpy as np

from analysis.api.charts import PageTable, StudyFacts, fresh_figures
from analysis.api.quantities import binary, whole

from .answers import DIRECTIONS
from .kinds import MEMORIES, memory_of

OF_HOLDING: Final = ("allocate_time", "register_time", "free_time")
"""The times that memory costs once."""
PLAIN: Final = "pageable"


def break_even(facts: StudyFacts) -> PageTable:
    """Number of copies after which memory has paid for itself, compared with pageable memory: the
    extra cost of allocating and freeing, divided by the time that each copy saves."""
    of_memory, of_copy = ["machine", "memory", "size"], ["machine", "direction", "size"]
    found = fresh_figures(facts, "host_time", *OF_HOLDING)
    found = found.assign(memory=found["variant"].map(memory_of))
    once = found[found["metric"].isin(OF_HOLDING)].groupby(of_memory)["median"].sum()
    loops = [f"{memory}_loop" for memory in MEMORIES]
    table = found[found["variant"].isin(loops) & found["metric"].eq("host_time")]
    table = table[(table["count"] == 1) & table["direction"].isin(DIRECTIONS)]
    table = table.join(once.rename("cost"), on=of_memory)
    plain = table[table["memory"] == PLAIN].set_index(of_copy)[["median", "cost"]]
    table = table[table["memory"] != PLAIN].join(plain.add_suffix("_plain"), on=of_copy)
    extra, saved = table["cost"] - table["cost_plain"], table["median_plain"] - table["median"]
    copies = (extra.clip(lower=0) / saved).where(saved > 0, np.inf)[extra.notna() & saved.notna()]
    table = table.assign(copies=copies.map(_copies), memory=table["memory"].str.replace("_", " "))
    table = table.dropna(subset="copies")
    wide = table.pivot(index=["machine", "direction", "memory"], columns="size", values="copies")
    rows = [
        [facts.inputs.called(machine), DIRECTIONS[direction], memory, *copies]
        for (machine, direction, memory), *copies in wide.fillna("").itertuples()
    ]
    sizes = [binary(size) for size in sorted({*table["size"]})]
    columns = ["machine", "direction", "memory", *sizes]
    return PageTable(columns, rows, "No machine has measured these costs yet.", sizes)


def _copies(copies: float) -> str:
    """A number of copies: whole, `at once` for none, `never` for infinity."""
    if np.isinf(copies):
        return "never"
    return whole(np.ceil(copies)) if copies > 0 else "at once"


TABLES: Final = {"break_even": break_even}
