"""Work of many CPU threads on large arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from analysis.api.measure import threads

T = TypeVar("T")

_CHUNK_BYTES: Final = 4 * 2**20
"""Bytes per task of a thread."""


def in_parallel(work: Callable[[slice], T], count: int, item_bytes: int) -> list[T]:
    """The results of `work` for all parts of `count` items, in order, by all CPUs that this process
    may use. Not to be called from a thread of `threads()`, which it waits for."""
    step = max(1, _CHUNK_BYTES // item_bytes)
    return list(threads().map(work, [slice(at, at + step) for at in range(0, count, step)]))
