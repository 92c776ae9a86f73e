"""Host memory by kind: allocation, page-locking and freeing, and the time of each."""

from __future__ import annotations

import ctypes
import mmap
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from cuda.bindings import runtime as cudart

from analysis.api.measure import Skip
from analysis.api.memory import cuda
from analysis.api.study import FieldError, require_known
from kernels.common.arrays import Bytes, bytes_at, managed

KINDS: Final = (
    *("pageable", "pinned", "write_combined"),
    *("registered", "registered_huge", "managed"),
)
"""pageable: from the operating system, on pages of the base size
pinned: page-locked by CUDA at allocation
write_combined: pinned, bypassing the CPU's caches
registered: pageable, page-locked after allocation
registered_huge: the same on transparent huge pages
managed: migrates by page between host and device; never freed"""

HUGE_PAGE: Final = 2 * 2**20


class NoHugePages(Skip):
    """The kernel provided no transparent huge pages for memory that requested them."""


class HostMemory:
    """`size` bytes of host memory of one kind, uninitialised, with every page present.

    `bytes` is the memory as uint8 [size] and must not be used after `close`. `seconds` has
    `allocate`, `register` for registered kinds, and after `close` also `free`, which includes
    unregistering. FieldError for a kind that is not in KINDS, NoHugePages if huge pages are not
    available.
    """

    def __init__(self, kind: str, size: int) -> None:
        require_known("memory", kind, KINDS)
        if size < 1:
            raise FieldError("size", "at least 1", size)
        self.kind = kind
        self.seconds: dict[str, float] = {}
        self._mapping: mmap.mmap | None = None
        self._is_registered = False
        with self._timed("allocate"):
            if kind in ("pinned", "write_combined"):
                self.bytes = self._by_cuda(size)
            elif kind == "managed":
                self.bytes = managed((size,), np.uint8)
            else:
                self.bytes = self._mapped(size)
        self.pointer = int(self.bytes.ctypes.data)
        try:
            if kind == "registered_huge" and (have := huge_bytes(self.pointer)) < size // 2:
                raise NoHugePages(f"{have} of {size} B on transparent huge pages")
            if kind in ("registered", "registered_huge"):
                with self._timed("register"):
                    cuda(cudart.cudaHostRegister(self.pointer, size, 0))
                self._is_registered = True
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Unregister and free the memory. Managed memory stays until the process ends."""
        pointer, self.pointer = self.pointer, 0
        if not pointer or self.kind == "managed":
            return
        with self._timed("free"):
            if self._is_registered:
                cuda(cudart.cudaHostUnregister(pointer))
            if self._mapping is not None:
                self._mapping.close()
            else:
                cuda(cudart.cudaFreeHost(pointer))

    def __del__(self) -> None:
        # CUDA must release page-locked memory before it is returned to the system.
        if getattr(self, "pointer", 0):
            self.close()

    def is_page_locked(self) -> bool:
        """Whether the driver reports this address as page-locked."""
        attributes = cuda(cudart.cudaPointerGetAttributes(self.pointer))
        return bool(attributes.type == cudart.cudaMemoryType.cudaMemoryTypeHost)

    def _by_cuda(self, size: int) -> Bytes:
        flags = cudart.cudaHostAllocMapped
        if self.kind == "write_combined":
            flags |= cudart.cudaHostAllocWriteCombined
        return bytes_at(int(cuda(cudart.cudaHostAlloc(size, flags))), size)

    def _mapped(self, size: int) -> Bytes:
        """Anonymous pages that start at a huge-page boundary, each touched once."""
        is_huge = self.kind == "registered_huge"
        room = -(-size // HUGE_PAGE) * HUGE_PAGE if is_huge else size
        self._mapping = mmap.mmap(-1, room + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        # The default differs between machines.
        try:
            self._mapping.madvise(mmap.MADV_HUGEPAGE if is_huge else mmap.MADV_NOHUGEPAGE)
        except OSError as error:  # a kernel without huge pages: all pages have the base size
            if is_huge:
                raise NoHugePages(f"the kernel has none: {error}") from error
        # If this view stayed alive, the mapping could not be closed.
        start = ctypes.addressof(ctypes.c_uint8.from_buffer(self._mapping))
        found = bytes_at(-(-start // HUGE_PAGE) * HUGE_PAGE, size)
        found[:: mmap.PAGESIZE] = 0
        return found

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start = time.perf_counter_ns()
        yield
        self.seconds[part] = (time.perf_counter_ns() - start) * 1e-9


def huge_bytes(pointer: int, smaps: Path = Path("/proc/self/smaps")) -> int:
    """Bytes on transparent huge pages in the mapping that contains the address; 0 if none does."""
    inside = False
    for line in smaps.read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= pointer < int(found[2], 16)
        elif inside and (found := re.match(r"AnonHugePages: +(\d+) kB", line)):
            return int(found[1]) * 1024
    return 0
