"""Tables of Engram rows: from how many rows on sorting pays, and every measured time."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from analysis.api.charts import PageTable, StudyFacts, fresh_figures, machines_by_evidence
from analysis.api.quantities import SAME_WITHIN, binary, runs_phrase, whole

EMPTY: Final = "No machine has measured Engram rows yet."
POOL: Final = ["machine", "row_bytes", "pool_mib"]
POOL_COLUMNS: Final = ["machine", "bytes of a row", "pool"]
SORT_ALONE: Final = " alone"
"""End of the name of an engine's lookup whose sort alone is timed."""
TITLES: Final = {
    "loads_first": "ours",
    "sorted": "sorted",
    "fetched_once": "each row once",
    "packed_on_request": "packed by the CPU",
    "both_on_request": "SMs and CPU",
    "sglang_engram": "sglang",
    "sglang_engram_sorted": "sglang, sorted",
    "vllm_engram": "vLLM",
    "vllm_engram_sorted": "vLLM, sorted",
    f"sglang_engram_sorted{SORT_ALONE}": "sglang's sort alone",
    f"vllm_engram_sorted{SORT_ALONE}": "vLLM's sort alone",
}
"""Titles of columns by variant, without the size of a row at the end of its name."""
BY_CPU: Final = ("packed_on_request", "both_on_request")
"""Variants that host time compares."""
SORTS: Final = {
    "sorted": ("loads_first", "sorted"),
    "each row once": ("loads_first", "fetched_once"),
    "sglang's sort": ("sglang_engram", "sglang_engram_sorted"),
    "vLLM's sort": ("vllm_engram", "vllm_engram_sorted"),
}
"""Titles of columns, and a variant without and with a sort."""


def times(facts: StudyFacts) -> pd.DataFrame:
    """Fresh rows of lookups by the clock that compares them, and of sorts alone; `way` is a key of
    TITLES. `machine` sorts by evidence."""
    rows = fresh_figures(facts, "gpu_time", "host_time", "sort_time")
    way = rows["variant"].str.removesuffix("_256")
    clock = way.isin(BY_CPU).map({True: "host_time", False: "gpu_time"})
    is_sort = rows["metric"] == "sort_time"
    machine = pd.Categorical(rows["machine"], machines_by_evidence(facts))
    rows = rows.assign(way=way.mask(is_sort, way + SORT_ALONE), machine=machine)
    return rows[(is_sort | (rows["metric"] == clock)) & rows["row_bytes"].notna()]


def by_way(facts: StudyFacts, column: str) -> pd.DataFrame:
    """A column of `times` by POOL and the number of rows; a column for each of TITLES."""
    table = times(facts).pivot(index=[*POOL, "rows"], columns="way", values=column)
    return table.reindex(columns=[*TITLES]).dropna(how="all")


def sorting_pays(facts: StudyFacts) -> PageTable:
    """The least number of rows from which on a sort is faster, by machine, row size and pool."""
    rows = []
    basis = times(facts).query("way == 'sorted'").groupby(POOL, observed=True)
    least = basis[["runs", "hosts"]].min()
    pools: Any = by_way(facts, "median").groupby(POOL, observed=True)
    for place, pool in pools:
        answers = [_from(pool.droplevel(POOL), *pair) for pair in SORTS.values()]
        if any(answers):
            rows.append([*_pool(facts, *place), *answers, runs_phrase(*least.loc[place])])
    columns = [*POOL_COLUMNS, *SORTS, "runs"]
    return PageTable(columns, rows, EMPTY, columns[1:-1])


def _pool(facts: StudyFacts, machine: str, row_bytes: float, pool_mib: float) -> list[str]:
    return [facts.inputs.called(machine), whole(row_bytes), binary(pool_mib * 2**20)]


def _from(pool: pd.DataFrame, plain: str, in_order: str) -> str:
    """The least number of rows, the index of `pool`, from which on `in_order` is faster; empty if a
    time is missing."""
    if pool[[plain, in_order]].isna().any(axis=None):
        return ""
    pays = pool[in_order] * (1 + SAME_WITHIN) < pool[plain]
    from_here = pays[::-1].cummin()
    return f"from {whole(from_here[from_here].index.min())} rows" if pays.iloc[-1] else "never"


def engram(facts: StudyFacts) -> PageTable:
    """Every time of rows that the engines' kernels can fetch, and of their sorts alone."""
    table = by_way(facts, "short").dropna(subset=[*SORTS["sglang's sort"]]).fillna("")
    rows = [[*_pool(facts, *place), whole(n), *cells] for (*place, n), *cells in table.itertuples()]
    columns = [*POOL_COLUMNS, "rows", *TITLES.values()]
    return PageTable(columns, rows, EMPTY, columns[1:])
