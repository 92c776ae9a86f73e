"""Memory that all inputs of a process share: the pool, and the landing area of the check."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from analysis.api.measure import Skip, cores
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import Bytes
from kernels.common.host_memory import HostMemory
from kernels.common.large_pool import LargePool

MIB: Final = 2**20


def pool_bytes(case: Case, largest: int) -> int:
    """Bytes of the pool of `case`, from its key `pool_mib`. FieldError above `largest`."""
    size = case.number("pool_mib") * MIB
    if size > largest:
        expected = f"at most largest_pool_mib, {largest // MIB}"
        raise FieldError(f"case {case.id}: pool_mib", expected, size // MIB)
    return size


def cores_for(variant: Variant) -> list[int]:
    """The CPUs for the threads of a gather. Skip if the CPU takes part and has a single core."""
    cpus = cores()
    if variant.host_work and len(cpus) < 2:
        raise Skip("the CPU works beside the caller: that takes two cores, and there is only one")
    return cpus


def largest_that_fits(size: int, largest: int, rng: np.random.Generator) -> LargePool:
    """A pool of `largest` bytes, so that it is filled and pinned once, or of `size` bytes if the
    host has no room for these. Skip if it has no room for `size` bytes either."""
    try:
        return LargePool(max(size, largest), rng)
    except Skip:
        return LargePool(size, rng)


class Buffers:
    """Pinned host memory that is reused, because touching new pages is slow."""

    def __init__(self) -> None:
        self._held: dict[str, HostMemory] = {}

    def of(self, name: str, shape: tuple[int, int]) -> Bytes:
        """uint8 of this shape, the same memory for every caller with this name."""
        size = shape[0] * shape[1]
        if name not in self._held or self._held[name].bytes.nbytes < size:
            if name in self._held:
                self._held.pop(name).close()
            self._held[name] = HostMemory("pinned", size)
        return self._held[name].bytes[:size].reshape(shape)

    def close(self) -> None:
        """Free all memory."""
        while self._held:
            self._held.popitem()[1].close()


class Shared:
    """Memory that is allocated once in a process and grows if necessary, and the gather in use."""

    def __init__(self) -> None:
        self._pool: LargePool | None = None
        self._buffers = Buffers()
        self._in_use: Any = None

    def pool(self, size: int, largest: int, rng: np.random.Generator) -> Bytes:
        """The first `size` bytes of the pool, uint8 [size]; see `largest_that_fits`."""
        if self._pool is None or self._pool.bytes.nbytes < size:
            self._release_pool()
            self._pool = largest_that_fits(size, largest, rng)
        return self._pool.bytes[:size]

    def landing(self, rows: int, row_bytes: int) -> Bytes:
        """Pinned memory uint8 [rows, row_bytes], the same for every caller."""
        return self._buffers.of("landing", (rows, row_bytes))

    def use(self, bound: Any) -> Any:
        """Close the previous gather; only the latest one is in use."""
        if self._in_use is not None:
            self._in_use.close()
        self._in_use = bound
        return bound

    def close(self) -> None:
        """Close the gather in use and free all memory."""
        self._release_pool()
        self._buffers.close()

    def _release_pool(self) -> None:
        """Close the gather that reads the pool, then the pool."""
        self.use(None)
        if self._pool is not None:
            self._pool.close()
            self._pool = None
