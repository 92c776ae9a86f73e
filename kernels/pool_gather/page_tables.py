"""Tables of the page: reads of page tables from hardware counters, and when sorting pays."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, Final

import pandas as pd

from analysis.api.charts import (
    STALE,
    PageTable,
    StudyFacts,
    fresh_figures,
    machines_by_evidence,
    walk_reads,
)
from analysis.api.quantities import SAME_WITHIN, binary, digits, quantity, runs_phrase, whole
from analysis.api.study import parse_case

SORTS: Final = {
    "sorted": ("loads_first", "sorted"),
    "each row once": ("loads_first", "fetched_once"),
    "sglang's sort": ("sglang_engram", "sglang_engram_sorted"),
    "vLLM's sort": ("vllm_engram", "vllm_engram_sorted"),
}
"""Titles of columns, and a lookup of Engram rows without and with a sort, without the size of a row
at the end of its name."""


def page_table_reads(facts: StudyFacts) -> PageTable:
    """A row for each variant whose reads of page tables were counted on a machine."""
    rows = []
    for machine in facts.machines:
        for variant in facts.study.variants:
            capture = facts.capture(machine, variant, "counters")
            counters = capture.counters if capture.is_there else {}
            with suppress(KeyError):
                count = walk_reads(counters)
                read = counters.get("dram__bytes_read.sum", math.nan)
                called = facts.inputs.called(machine)
                per_row = count / int(parse_case(capture.case)["rows"])
                name = f"{variant.name}, stale" if capture.state == STALE else variant.name
                figures = [whole(count), digits(per_row), quantity(read, "B")]
                rows.append([name, called, capture.case, *figures])
    columns = ["variant", "machine", "case", "reads of page tables", "for each row"]
    columns.append("GPU memory read")
    return PageTable(columns, rows, "No profiler has counted them yet.", columns[3:])


def sorting_pays(facts: StudyFacts) -> PageTable:
    """The least number of rows from which on a sort is faster, by machine, row size and pool."""
    place = ["machine", "row_bytes", "pool_mib"]
    found = fresh_figures(facts, "gpu_time").dropna(subset="row_bytes")
    machine = pd.Categorical(found["machine"], machines_by_evidence(facts))
    found = found.assign(way=found["variant"].str.removesuffix("_256"), machine=machine)
    ways = list(dict.fromkeys(way for pair in SORTS.values() for way in pair))
    times = found.pivot(index=[*place, "rows"], columns="way", values="median")
    pools: Any = times.reindex(columns=ways).dropna(how="all").groupby(place, observed=True)
    basis = found[found["way"] == "sorted"].groupby(place, observed=True)[["runs", "hosts"]].min()
    rows = []
    for key, pool in pools:
        answers = [_from(pool.droplevel(place), *pair) for pair in SORTS.values()]
        if any(answers):
            name, row_bytes, pool_mib = key
            words = facts.inputs.called(name), whole(row_bytes), binary(pool_mib * 2**20)
            rows.append([*words, *answers, runs_phrase(*basis.loc[key])])
    columns = ["machine", "bytes of a row", "pool", *SORTS, "runs"]
    return PageTable(columns, rows, "No machine has measured Engram rows yet.", columns[1:-1])


def _from(pool: pd.DataFrame, plain: str, in_order: str) -> str:
    """The least number of rows, the index of `pool`, from which on `in_order` is faster; empty if a
    time is missing."""
    if pool[[plain, in_order]].isna().any(axis=None):
        return ""
    pays = pool[in_order] * (1 + SAME_WITHIN) < pool[plain]
    from_here = pays[::-1].cummin()
    return f"from {whole(from_here[from_here].index.min())} rows" if pays.iloc[-1] else "never"


TABLES: Final = {"page_table_reads": page_table_reads, "sorting_pays": sorting_pays}
