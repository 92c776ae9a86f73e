"""Memory that all inputs of a process share: the pool, and the landing area of the check."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.api.measure import Skip
from analysis.api.memory import Bytes, HostMemory, LargePool

MIB = 2**20


class Shared:
    """Memory that is allocated once in a process and grows if necessary, and the gather in use."""

    def __init__(self) -> None:
        self._pool: LargePool | None = None
        self._landing: HostMemory | None = None
        self._in_use: Any = None

    def pool(self, size: int, largest: int, rng: np.random.Generator) -> Bytes:
        """The first `size` bytes of the pool, uint8 [size].

        The pool has `largest` bytes, so that it is filled and pinned once, or `size` bytes if the
        host has no room for these. Skip if it has no room for `size` bytes either.
        """
        if self._pool is None or self._pool.bytes.nbytes < size:
            self._release_pool()
            try:
                self._pool = LargePool(max(size, largest), rng)
            except Skip:
                self._pool = LargePool(size, rng)
        return self._pool.bytes[:size]

    def landing(self, rows: int, row_bytes: int) -> Bytes:
        """Pinned memory uint8 [rows, row_bytes], the same for every caller."""
        size = rows * row_bytes
        if self._landing is None or self._landing.bytes.nbytes < size:
            if self._landing is not None:
                self._landing.close()
            self._landing = HostMemory("pinned", size)
        return self._landing.bytes[:size].reshape(rows, row_bytes)

    def use(self, bound: Any) -> Any:
        """Close the previous gather; only the latest one is in use."""
        if self._in_use is not None:
            self._in_use.close()
        self._in_use = bound
        return bound

    def close(self) -> None:
        """Close the gather in use and free all memory."""
        self._release_pool()
        if self._landing is not None:
            self._landing.close()
            self._landing = None

    def _release_pool(self) -> None:
        """Close the gather that reads the pool, then the pool."""
        self.use(None)
        if self._pool is not None:
            self._pool.close()
            self._pool = None
