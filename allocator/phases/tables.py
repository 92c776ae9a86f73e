"""The heap over time: built allocators replay a tape over the simulated source.

The placement of blocks does not depend on a GPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pandas as pd

from allocator.lib.patterns import ALLOCATE, FREE, PATTERNS, MissingTrace, Tape
from analysis.api.code import load_module
from analysis.api.study import Study

REPLAYED: Final = ("trace_transformer_training", "gradient_accumulation")
"""Patterns to replay, by preference; the last needs no recorded trace."""
MAPPED: Final = "p4_final"
RESERVING: Final = ("p1_exact_cache", "p3_block_pool", MAPPED)
GPU_BYTES: Final = 79 * 2**30
SHORT: Final = (("A", 6), ("B", 3), ("C", 5), ("A", 0), ("C", 0), ("D", 7), ("E", 4))
"""A tape short enough to be drawn: the allocation, and its size in MiB, or 0 for a free. D fits
into the memory of A and C only where sizes are rounded or neighbours merged."""
STEPS: Final = ("p0_driver", "p1_exact_cache", "p2_size_buckets", "p3_block_pool", MAPPED)
POINTS: Final = 400
"""Number of points in time at which the heap is sampled."""


def memory_map(study: Study, modules: Path) -> pd.DataFrame:
    """The placement of allocations by MAPPED: a row for each, in the order of their frees.

    `begin` and `end` count operations; `low` and `high` are addresses in B, with segments stacked
    in the order of their creation; `bytes` is the requested size, `pattern` the replayed pattern.
    HotpathError where the module is not built.
    """
    allocator, _ = _empty(study, modules, MAPPED)
    pattern, tape = _tape()
    bases: dict[int, int] = {}
    top = 0
    slots: dict[int, tuple[int, int, int]] = {}
    rows = []
    for step, (kind, slot, size, _) in enumerate(tape.tolist()):
        if kind == ALLOCATE:
            slots[slot] = (allocator.allocate(size), size, step)
            segments = {block["segment"] for block in allocator.snapshot()} - set(bases)
            for segment in sorted(segments):
                room = sum(b["size"] for b in allocator.snapshot() if b["segment"] == segment)
                bases[segment], top = top, top + room
        elif kind == FREE:
            pointer, size, begin = slots.pop(slot)
            segment = max(base for base in bases if base <= pointer)
            low = bases[segment] + pointer - segment
            rows.append((begin, step, low, low + size, size))
            allocator.free(pointer)
    table = pd.DataFrame(rows, columns=["begin", "end", "low", "high", "bytes"])
    return table.assign(pattern=pattern)


def heap(study: Study, modules: Path) -> pd.DataFrame:
    """Bytes requested, and bytes reserved by each of RESERVING, at POINTS of the same pattern.

    Columns `operation`, `what`, `bytes` and `pattern`. HotpathError where a module is not built.
    """
    pattern, tape = _tape()
    every = max(1, len(tape) // POINTS)
    rows = []
    for name in RESERVING:
        allocator, source = _empty(study, modules, name)
        slots: dict[int, tuple[int, int]] = {}
        asked = 0
        for step, (kind, slot, size, _) in enumerate(tape.tolist()):
            if kind == ALLOCATE:
                slots[slot] = allocator.allocate(size), size
                asked += size
            elif kind == FREE:
                pointer, freed = slots.pop(slot)
                allocator.free(pointer)
                asked -= freed
            if step % every == 0:
                rows.append((step, f"reserved by {name}", source.counts()["reserved"]))
                if name == MAPPED:
                    rows.append((step, "asked for", asked))
    return pd.DataFrame(rows, columns=["operation", "what", "bytes"]).assign(pattern=pattern)


def after_short(study: Study, modules: Path) -> pd.DataFrame:
    """The heap of each of STEPS after the tape SHORT: a row for each segment and live allocation.

    Columns `variant`, `what` (`segment`, or the allocation's name), `low` and `high` (addresses in
    B, segments side by side) and `driver_calls`, of the whole tape. HotpathError where a module is
    not built.
    """
    rows = []
    for name in STEPS:
        allocator, source = _empty(study, modules, name)
        segments: dict[int, int] = {}
        live: dict[str, tuple[int, int]] = {}
        for what, mib in SHORT:
            before = source.counts()["reserved"]
            if mib:
                live[what] = allocator.allocate(mib * 2**20), mib * 2**20
            else:
                allocator.free(live[what][0])
            grown = source.counts()["reserved"] - before
            if grown > 0:  # a new segment begins with the allocation that needed it
                segments[live[what][0]] = grown
            elif grown < 0:
                del segments[live[what][0]]
            if not mib:
                del live[what]
        counts = source.counts()
        calls = counts["allocations"] + counts["frees"]
        low = 0
        for base, size in segments.items():
            rows.append((name, "segment", low, low + size, calls))
            for what, (pointer, asked) in live.items():
                if base <= pointer < base + size:
                    at = low + pointer - base
                    rows.append((name, what, at, at + asked, calls))
            low += size
    return pd.DataFrame(rows, columns=["variant", "what", "low", "high", "driver_calls"])


def _empty(study: Study, modules: Path, name: str) -> tuple[Any, Any]:
    """An empty allocator of a variant, and its source."""
    module = load_module(modules, study, study.variant(name))
    source = module.HostSource(GPU_BYTES)
    return module.Allocator(source), source


def _tape() -> tuple[str, Tape]:
    """Name and tape of the replayed pattern."""
    for name in REPLAYED:
        try:
            return name, PATTERNS[name]().tapes[0]
        except MissingTrace:
            continue
    raise AssertionError("the last of REPLAYED needs no trace")


TABLES: Final = {"memory_map": memory_map, "heap": heap, "after_short": after_short}
