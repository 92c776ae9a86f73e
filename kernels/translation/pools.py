"""The pools of one process: one per kind of memory, as large as the machine allows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analysis.api.measure import Skip
from analysis.api.memory import largest_pool
from kernels.common.large_pool import LargePool

STEP = 64 * 2**20
LARGEST_KIND = "registered_huge"
"""The kind whose pool has pool_mib. Pools of other kinds, for comparison, have kinds_mib."""


class Pools:
    """Creates each pool on first use and keeps it, because creation takes seconds."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._constants = constants
        self._rng = rng
        self._held: dict[str, LargePool] = {}
        self._refused: dict[str, str] = {}

    def of(self, memory: str, extent: int) -> LargePool:
        """The pool of this kind. Skip if it has fewer than `extent` bytes."""
        if memory not in self._held and memory not in self._refused:
            self._make(memory)
        pool = self._held.get(memory)
        size = pool.bytes.size if pool else 0
        if pool is None or size < extent:
            why = self._refused.get(memory) or f"the largest made here has {size} B"
            raise Skip(f"needs {extent} B of {memory} memory: {why}")
        return pool

    def _make(self, memory: str) -> None:
        """Create the pool, or a smaller one if the machine refuses it; record the first refusal."""
        key = "pool_mib" if memory == LARGEST_KIND else "kinds_mib"
        wanted = self._constants[key] * 2**20
        size = min(wanted, largest_pool() // STEP * STEP)
        if size < wanted:
            self._refused[memory] = f"this host allows a pool of {size} B"
        while size >= STEP:
            try:
                self._held[memory] = LargePool(size, self._rng, memory)
                return
            except Skip as refusal:
                self._refused.setdefault(memory, str(refusal))
                size = size // 2 // STEP * STEP
