"""The tables of the page: every way with 16 GiB, and why another process waits longer than it
should."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import extent, percent, quantity, whole
from analysis.api.study import parse_case

from .waits import SLOW_S

LIMIT_S: Final = 0.006
"""The claims allow the longest call of another process this time."""
CASE: Final = "mib=16384,beside=process,calls=malloc"
TIMED: Final = "timed_chunks"
"""The variant that times single chunks."""
ACTIONS: Final = {
    "pinning": ("call_worst", "chunk_register_worst"),
    "unpinning": ("unpin_worst", "chunk_unregister_worst"),
}
"""By what the program does: the neighbour's longest call, and the longest time of a chunk."""

MOST: Final = 0.5
IN_ONE: Final = 0.8
IN_CHUNKS: Final = 0.9
"""Shares of the longest call that name a cause. The last two are those of the claims."""
END_GAP_S: Final = 0.0001
"""A call that waits for several chunks ends within this time of the end of one, as in the claim."""

SHORT: Final = f"not long: at most {SLOW_S * 1e3:g} ms"
NO_CORE: Final = "waited for a core"
SLOW_ALONE: Final = "a call alone takes at least half as long"
TOUCHING: Final = "slow while pages are touched, before registration"
ONE_CHUNK: Final = "waited for one chunk"
MORE_CHUNKS: Final = "waited for several chunks in turn"
UNKNOWN: Final = "unexplained"


def large(facts: StudyFacts) -> PageTable:
    """A row for each machine and way of pinning 16 GiB, in the order of the steps."""
    columns = ["machine", "way", "runs", "pinned in", "longest call of the other process"]
    columns += ["longest call during unpinning"]
    columns += [f"runs with both within {LIMIT_S * 1e3:g} ms"]
    metrics, rows = ("host_time", "call_worst", "unpin_worst"), []
    for machine in machines_by_evidence(facts):
        for way in facts.study.variants:
            found = [facts.by_fresh_run(machine, way.name, CASE, metric) for metric in metrics]
            runs = len(found[0])
            if way.name != TIMED and runs and {len(by_run) for by_run in found} == {runs}:
                within = sum(max(pair) <= LIMIT_S for pair in zip(*found[1:], strict=True))
                row = [facts.inputs.called(machine), way.title, whole(runs)]
                row += [extent(by_run, "s") for by_run in found]
                rows.append([*row, f"{within} of {runs}"])
    empty = "No machine has measured these waits yet."
    return PageTable(columns, rows, empty, [*columns[2:3], columns[-1]])


def longest_calls(facts: StudyFacts) -> PageTable:
    """A row for each machine, size of a chunk, pinning or unpinning, and run."""
    shares = ["in one chunk", "in other chunks", "while pages are touched", "rest of the call"]
    columns = ["machine", "chunk", "during", "longest call", "longest call alone"]
    columns += ["longest time of a chunk", *shares, "waiting for a core"]
    columns += ["gap to the nearest end of a chunk", f"cause, if above {SLOW_S * 1e3:g} ms"]
    variant = facts.study.variant(TIMED)
    usual = variant.constants["chunk_mib"]
    cases = {int(parse_case(case.id).get("chunk_mib", usual)): case.id for case in variant.cases}
    rows = [
        [facts.inputs.called(machine), f"{mib} MiB", action, *_row(call)]
        for machine in machines_by_evidence(facts)
        for mib, case in sorted(cases.items())
        for action in ACTIONS
        for call in _calls(facts, machine, case, action).to_dict("records")
    ]
    return PageTable(columns, rows, "No machine has timed single chunks yet.", columns[3:-1])


def _calls(facts: StudyFacts, machine: str, case: str, action: str) -> pd.DataFrame:
    """The neighbour's longest call of each run, oldest first, as `cause` takes it."""
    call, chunk = ACTIONS[action]
    needed = {"seconds": call, "alone_s": "alone_worst", "chunk_s": chunk}
    needed |= {part: f"{call}_{part}" for part in ("in_chunks", "in_one", "end_gap")}
    # Nothing is touched during unpinning, and not every system counts waits for a core.
    more = {part: f"{call}_{part}" for part in ("touching", "queued")}
    by_run = {
        name: facts.by_fresh_run(machine, TIMED, case, metric)
        for name, metric in (needed | more).items()
    }
    runs = len(by_run["seconds"])
    complete = {name: figures for name, figures in by_run.items() if len(figures) == runs}
    if not runs or not needed.keys() <= complete.keys():
        return pd.DataFrame()
    return pd.DataFrame({"touching": 0.0, "queued": math.nan, **complete})


def _row(call: Mapping[Any, float]) -> list[str]:
    others = call["in_chunks"] - call["in_one"]
    rest = 1 - call["in_chunks"] - call["touching"]
    shares = [call["in_one"], others, call["touching"], rest]
    queued = "not counted" if math.isnan(call["queued"]) else percent(call["queued"])
    return [
        *(quantity(call[name], "s") for name in ("seconds", "alone_s", "chunk_s")),
        *(percent(max(share, 0.0)) for share in shares),
        *(queued, quantity(call["end_gap"], "s"), cause(call)),
    ]


def cause(call: Mapping[Any, float]) -> str:
    """The first cause that explains a call above SLOW_S.

    Of `seconds`, of which `alone_s` without pinning, `in_one`, `in_chunks`, `touching` and `queued`
    are shares, the last NaN if it is not counted; `end_gap` is in s.
    """
    if call["seconds"] <= SLOW_S:
        return SHORT
    in_chunks = call["in_chunks"] >= IN_CHUNKS and call["end_gap"] <= END_GAP_S
    causes = {
        NO_CORE: call["queued"] >= MOST,
        SLOW_ALONE: call["alone_s"] >= MOST * call["seconds"],
        TOUCHING: call["touching"] >= MOST,
        ONE_CHUNK: call["in_one"] >= IN_ONE,
        MORE_CHUNKS: in_chunks,
    }
    return next((cause for cause, holds in causes.items() if holds), UNKNOWN)


TABLES: Final = {"large": large, "longest_calls": longest_calls}
