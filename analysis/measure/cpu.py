"""The CPUs that this process may use, a thread pool for all of them, their caches and their speed.

Host memory is flushed from the caches before a device reads it: a device reads a line in a core's
private cache more slowly than one in memory, because the core has to be asked, and woken if it
sleeps.

The speed of memory changes CPU times between hosts and within one, so it is measured around every
round. The copy is the same work everywhere.
"""

import ctypes
import os
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from timeit import repeat
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import psutil

from analysis import BUILD
from analysis.base.errors import HotpathError
from analysis.base.limits import allowed_cores, parse_cpu_list, throttled_periods
from analysis.results.store.keys import Look

LIBRARY = BUILD / "cpu_cache.so"
_CHUNK = 4 * 2**20
"""Number of bytes that a thread flushes at a time."""
COPY_BYTES: Final = 64 * 2**20
REPEATS: Final = 5
"""Repetitions, of which the shortest counts: a disturbance is no property of the host."""


def cores() -> list[int]:
    """The CPUs in the order in which threads should be pinned to them: the first hardware thread of
    every core, then the second of each, and so on."""
    allowed = sorted(os.sched_getaffinity(0))
    return sorted(allowed, key=lambda cpu: (_siblings(cpu).index(cpu), cpu))


def use_cpus(cpus: Collection[int]) -> None:
    """Keep this process and its threads to `cpus`, and to no more of them than its CPU quota keeps
    busy: with more threads than that, all of them would be stopped in every period."""
    os.sched_setaffinity(0, cpus)
    if (allowed := allowed_cores()) < len(cpus):
        os.sched_setaffinity(0, cores()[:allowed])


def threads() -> ThreadPoolExecutor:
    """The shared thread pool, with one thread for each CPU that this process may use. A thread of
    the pool must not wait for further work of the pool, which could deadlock."""
    return _threads(os.getpid(), len(os.sched_getaffinity(0)))


@cache
def _threads(process_id: int, count: int) -> ThreadPoolExecutor:
    """One pool for each process, because a forked process does not inherit threads."""
    return ThreadPoolExecutor(count, f"pool of {process_id}")


def _siblings(cpu: int) -> list[int]:
    """The hardware threads of the core of `cpu`, including `cpu`; only `cpu` if unknown."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    return parse_cpu_list(path.read_text()) if path.exists() else [cpu]


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


@cache
def _library() -> ctypes.CDLL:
    if not LIBRARY.exists():
        raise HotpathError(f"{LIBRARY}: not built; run: snakemake --cores all build")
    library = ctypes.CDLL(str(LIBRARY))
    library.flush_pieces.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_size_t] * 3]
    library.flush_pieces.restype = None
    return library


def conditions() -> Look:
    """Measure the host, in about a tenth of a second.

    `copy_bytes_per_s`: bytes read and written as one core copies COPY_BYTES. `busy_share`: share of
    the cores that others used meanwhile.
    """
    source, target = _buffers()
    psutil.cpu_percent()  # begins the time that the next call is about
    started, own = time.perf_counter(), time.process_time()
    copy_s = min(repeat(lambda: np.copyto(target, source), number=1, repeat=REPEATS))
    available_s = (time.perf_counter() - started) * (psutil.cpu_count() or 1)
    own_share = (time.process_time() - own) / available_s
    return Look(
        copy_bytes_per_s=2 * COPY_BYTES / copy_s,
        busy_share=max(0.0, round(psutil.cpu_percent() / 100 - own_share, 3)),
        steal_s=psutil.cpu_times().steal,
        throttled_periods=throttled_periods(),
    )


@cache
def _buffers() -> tuple[np.ndarray, np.ndarray]:
    """Source and target of the copies, kept because the first access to their pages takes longer
    than the copies."""
    return np.ones(COPY_BYTES, np.uint8), np.zeros(COPY_BYTES, np.uint8)
