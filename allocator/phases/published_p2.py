"""The write-up's phase 2, in Python: powers of two up to 16 MiB, exact sizes above."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

ALIGNMENT = 512
MAX_CACHED = 2**30
MAX_BUCKET = 16 * 2**20


def bucket(nbytes: int) -> int:
    """The size of the block for a request."""
    if nbytes > MAX_BUCKET:
        return -(-nbytes // ALIGNMENT) * ALIGNMENT
    return max(ALIGNMENT, 1 << (nbytes - 1).bit_length())


class Memory:
    """A memory manager over `driver`, which allocates bytes and frees pointers."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        self._live: dict[int, int] = {}
        self._cached = 0

    def allocate(self, nbytes: int) -> int:
        size = bucket(nbytes)
        if self._free[size]:
            pointer = self._free[size].pop()
            self._cached -= size
        else:
            pointer = self._driver.allocate(size)
        self._live[pointer] = size
        return pointer

    def free(self, pointer: int) -> None:
        size = self._live.pop(pointer)
        if self._cached + size <= MAX_CACHED:
            self._free[size].append(pointer)
            self._cached += size
        else:
            self._driver.free(pointer)

    def __del__(self) -> None:
        for pointers in self._free.values():
            for pointer in pointers:
                self._driver.free(pointer)
