"""The write-up's starting point, in Python: every allocation and free is a driver call."""

from __future__ import annotations

from typing import Any


class Memory:
    """A memory manager over `driver`, which allocates bytes and frees pointers."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def allocate(self, nbytes: int) -> int:
        pointer: int = self._driver.allocate(nbytes)
        return pointer

    def free(self, pointer: int) -> None:
        self._driver.free(pointer)
