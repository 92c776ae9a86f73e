"""The write-up's phase 1, in Python: free lists by exact size, up to 1 GiB."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

ALIGNMENT = 512
MAX_CACHED = 2**30


class Memory:
    """A memory manager over `driver`, which allocates bytes and frees pointers."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        self._live: dict[int, int] = {}
        self._cached = 0

    def allocate(self, nbytes: int) -> int:
        size = -(-nbytes // ALIGNMENT) * ALIGNMENT
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
