"""Flushes host memory from the CPU's caches, so that a device reads it from DRAM.

A device reads a line in a core's private cache more slowly than one in memory: the core has to be
asked, and woken if it sleeps. The library that does it also measures a core's clock.
"""

from __future__ import annotations

import ctypes
from functools import cache
from timeit import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis import BUILD
from analysis.base.errors import HotpathError
from analysis.measure.cores import threads

LIBRARY = BUILD / "cpu_cache.so"
_CHUNK = 4 * 2**20
"""Number of bytes that a thread flushes at a time."""
_ADDS_IN_BLOCK = 16
_CLOCK_BLOCKS = 200_000
"""About a millisecond."""


def flush(array: npt.NDArray[Any]) -> None:
    """Flush a C-contiguous array from the caches of all cores."""
    data = array.reshape(-1).view(np.uint8)
    whole = len(data) // _CHUNK * _CHUNK
    flush_rows(data[:whole].reshape(-1, _CHUNK), np.arange(whole // _CHUNK))
    flush_rows(data[None, whole:], np.arange(1))


def flush_rows(table: npt.NDArray[np.uint8], rows: npt.NDArray[np.integer[Any]]) -> None:
    """Flush the given rows of a table uint8 [any, row_bytes]. Each row is contiguous; there may be
    gaps between rows. HotpathError if the library has not been built."""
    library, row_bytes = _library(), table.shape[1]
    indices = np.ascontiguousarray(rows, np.int64)
    step = max(1, _CHUNK // max(1, row_bytes))

    def flush_some(start: int) -> None:
        some = indices[start : start + step]
        library.flush_pieces(
            table.ctypes.data, some.ctypes.data, len(some), table.strides[0], row_bytes
        )

    if len(indices) <= step:
        flush_some(0)
    else:
        list(threads().map(flush_some, range(0, len(indices), step)))


def core_clock_hz() -> float | None:
    """Clock of the current core, from a chain of dependent additions that take a cycle each. None
    if the library has not been built: programs without a GPU may measure without it."""
    if not LIBRARY.exists():
        return None
    add = _library().add_in_chain
    shortest_s = min(repeat(lambda: add(_CLOCK_BLOCKS), number=1, repeat=5))
    return round(_CLOCK_BLOCKS * _ADDS_IN_BLOCK / shortest_s, -5)


@cache
def _library() -> ctypes.CDLL:
    if not LIBRARY.exists():
        raise HotpathError(f"{LIBRARY}: not built; run: snakemake --cores all build")
    library = ctypes.CDLL(str(LIBRARY))
    library.flush_pieces.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_size_t] * 3]
    library.flush_pieces.restype = None
    library.add_in_chain.argtypes = [ctypes.c_size_t]
    library.add_in_chain.restype = ctypes.c_uint64
    return library
