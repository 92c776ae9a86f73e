"""Takes host memory out of the CPU's caches, so that a device that reads it finds it in DRAM.

A line in the private cache of a core is read more slowly by a device than one in memory: the core
has to be asked, and woken where it sleeps.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy.typing as npt

from analysis.errors import HotpathError

LIBRARY = "cpu_cache.so"
"""Built beside the modules of the studies."""

CHUNK = 4 * 2**20
"""Bytes that a thread flushes at a time."""

Flush = Callable[[Iterable[npt.NDArray[Any]]], None]


def flusher(modules: Path) -> Flush:
    """What flushes C-contiguous arrays from the caches of all cores.

    The first flush of anything raises HotpathError where the library has not been built.
    """

    def flush(arrays: Iterable[npt.NDArray[Any]]) -> None:
        chunks = [
            (array.ctypes.data + start, min(CHUNK, array.nbytes - start))
            for array in arrays
            for start in range(0, array.nbytes, CHUNK)
        ]
        if not chunks:
            return
        flush_chunk = _library(modules / LIBRARY).flush
        if len(chunks) == 1:
            flush_chunk(*chunks[0])
            return
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(lambda chunk: flush_chunk(*chunk), chunks))

    return flush


def _library(path: Path) -> ctypes.CDLL:
    if not path.exists():
        raise HotpathError(f"{path}: not built; run: snakemake --cores all build")
    library = ctypes.CDLL(str(path))
    library.flush.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.flush.restype = None
    return library
