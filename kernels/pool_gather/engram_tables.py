"""Tables of Engram rows: from how many rows on sorting pays, and every measured time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import SAME_WITHIN, binary, quantity, runs_phrase, whole

MIB: Final = 2**20
EMPTY: Final = "No machine has measured Engram rows yet."
CASES: Final = {656: ("engram_656", ""), 256: ("engram_256", "_256")}
"""Case sets by the bytes of a row, and how the names of ours end there."""

OURS: Final = {
    "loads_first": "ours",
    "sorted": "sorted",
    "fetched_once": "each row once",
    "packed_on_request": "packed by the CPU",
    "both_on_request": "SMs and CPU",
}
"""Titles of columns by variant, without the end of its name."""
ENGINES: Final = {
    "sglang_engram": "sglang",
    "sglang_engram_sorted": "sglang, sorted",
    "vllm_engram": "vLLM",
    "vllm_engram_sorted": "vLLM, sorted",
}
SORT_ALONE: Final = {
    "sglang_engram_sorted": "sglang's sort alone",
    "vllm_engram_sorted": "vLLM's sort alone",
}
BY_CPU: Final = ("packed_on_request", "both_on_request")
"""Variants that host time compares."""
SORTS: Final = {
    "sorted": ("loads_first", "sorted"),
    "each row once": ("loads_first", "fetched_once"),
    "sglang's sort": ("sglang_engram", "sglang_engram_sorted"),
    "vLLM's sort": ("vllm_engram", "vllm_engram_sorted"),
}
"""Titles of columns, and a variant without and with a sort."""


class Place(NamedTuple):
    """Where rows are looked up, and how many."""

    row_bytes: int
    pool_mib: int
    rows: int

    @property
    def case(self) -> str:
        size = f"row_bytes={self.row_bytes}"
        return f"rows={self.rows},pool_mib={self.pool_mib},layout=scattered,{size}"


def places(facts: StudyFacts, row_bytes: int) -> Iterator[list[Place]]:
    """The measured numbers of rows, ascending, for each pool."""
    keys = facts.study.case_sets[CASES[row_bytes][0]].values
    for pool_mib in map(int, keys["pool_mib"]):
        yield [Place(row_bytes, pool_mib, rows) for rows in sorted(map(int, keys["rows"]))]


def seconds(
    facts: StudyFacts, machine: str, name: str, place: Place, metric: str = ""
) -> float | None:
    """A fresh time of a variant of OURS or ENGINES, by its usual clock without a `metric`."""
    metric = metric or ("host_time" if name in BY_CPU else "gpu_time")
    whole_name = name + CASES[place.row_bytes][1] * (name in OURS)
    row = facts.find(machine, whole_name, place.case, metric)
    return row.median if row is not None and not row.stale else None


def sorting_pays(facts: StudyFacts) -> PageTable:
    """The least number of rows from which on a sort is faster, by machine, row size and pool."""
    rows = []
    for machine in machines_by_evidence(facts):
        for row_bytes in CASES:
            for pool in places(facts, row_bytes):
                answers = [_from(facts, machine, pool, *pair) for pair in SORTS.values()]
                if any(answers):
                    sizes = [whole(row_bytes), binary(pool[0].pool_mib * MIB)]
                    runs = _runs(facts, machine, pool)
                    rows.append([facts.inputs.called(machine), *sizes, *answers, runs])
    columns = ["machine", "bytes of a row", "pool", *SORTS, "runs"]
    return PageTable(columns, rows, EMPTY, columns[1:-1])


def _from(facts: StudyFacts, machine: str, pool: list[Place], plain: str, in_order: str) -> str:
    """The least number of rows from which on `in_order` is faster; empty if one is missing."""
    found = [[seconds(facts, machine, name, at) for name in (plain, in_order)] for at in pool]
    least = ""
    for place, (without, sorted_s) in zip(pool, found, strict=True):
        if without is None or sorted_s is None:
            return ""
        if sorted_s * (1 + SAME_WITHIN) >= without:
            least = "never"
        elif least in ("", "never"):
            least = f"from {whole(place.rows)} rows"
    return least


def _runs(facts: StudyFacts, machine: str, pool: list[Place]) -> str:
    """The least number of runs and hosts of the sorted gather."""
    names = [f"sorted{CASES[at.row_bytes][1]}" for at in pool]
    found = [facts.find(machine, n, at.case, "gpu_time") for n, at in zip(names, pool, strict=True)]
    least = min(((row.runs, row.hosts) for row in found if row is not None), default=None)
    return runs_phrase(*least) if least else ""


def engram(facts: StudyFacts) -> PageTable:
    """Every time of Engram rows, and of the engines' sorts alone."""
    rows = []
    for machine in machines_by_evidence(facts):
        for place in (at for size in CASES for pool in places(facts, size) for at in pool):
            times = [seconds(facts, machine, name, place) for name in (*OURS, *ENGINES)]
            times += [seconds(facts, machine, name, place, "sort_time") for name in SORT_ALONE]
            if any(times):
                row = [facts.inputs.called(machine), whole(place.row_bytes)]
                row += [binary(place.pool_mib * MIB), whole(place.rows)]
                rows.append([*row, *("" if one is None else quantity(one, "s") for one in times)])
    columns = ["machine", "bytes of a row", "pool", "rows", *OURS.values(), *ENGINES.values()]
    columns += SORT_ALONE.values()
    return PageTable(columns, rows, EMPTY, columns[1:])
