"""The heap over time: built allocators replay a tape over the simulated source.

The placement of blocks does not depend on a GPU.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from allocator.lib.patterns import ALLOCATE, FREE, PATTERNS, MissingTrace, Tape
from analysis.api.code import load_module
from analysis.api.study import Study

REPLAYED: Final = ("trace_transformer_training", "gradient_accumulation")
"""Patterns to replay, by preference; the last needs no recorded trace."""
STEPS: Final = ("p1_exact_cache", "p3_block_pool", "p4_final")
"""Variants whose reserved memory is drawn."""
GPU_BYTES: Final = 79 * 2**30
POINTS: Final = 400
"""Number of points in time at which the heap is sampled."""


def heap(study: Study, modules: Path) -> pd.DataFrame:
    """Bytes requested, and bytes reserved by each of STEPS, at POINTS of one pattern.

    Columns `operation`, `what`, `bytes` and `pattern`. HotpathError where a module is not built.
    """
    pattern, tape = _tape()
    every = max(1, len(tape) // POINTS)
    rows, asked = [], dict[int, int]()
    for name in STEPS:
        module = load_module(modules, study, study.variant(name))
        source = module.HostSource(GPU_BYTES)
        allocator, slots = module.Allocator(source), dict[int, tuple[int, int]]()
        total = 0
        for step, (kind, slot, size, _) in enumerate(tape.tolist()):
            if kind == ALLOCATE:
                slots[slot] = allocator.allocate(size), size
                total += size
            elif kind == FREE:
                pointer, freed = slots.pop(slot)
                allocator.free(pointer)
                total -= freed
            if step % every == 0:
                rows.append((step, f"reserved by {name}", source.counts()["reserved"]))
                asked[step] = total
    rows += [(step, "asked for", total) for step, total in asked.items()]
    return pd.DataFrame(rows, columns=["operation", "what", "bytes"]).assign(pattern=pattern)


def _tape() -> tuple[str, Tape]:
    """Name and tape of the replayed pattern."""
    for name in REPLAYED:
        try:
            return name, PATTERNS[name]().tapes[0]
        except MissingTrace:
            continue
    raise AssertionError("the last of REPLAYED needs no trace")


TABLES: Final = {"heap": heap}
