"""Page-locked memory of gigabytes for gathers and address translation, by kind."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import numpy as np
from cuda.bindings import driver
from cuda.bindings import runtime as cudart

from analysis.api.measure import Skip, threads
from analysis.api.memory import CudaError, cuda, largest_pool
from analysis.api.study import FieldError, require_known
from kernels.common.arrays import Bytes, bytes_at
from kernels.common.host_memory import HUGE_PAGE, NoHugePages, huge_bytes
from kernels.common.random_bytes import random_bytes

KINDS: Final = (
    *("pinned", "registered", "registered_huge", "registered_1gib"),
    *("host_numa", "aliased", "device"),
)
"""pinned: page-locked by CUDA at allocation
registered: page-locked after allocation, on pages of the base size
registered_huge: the same on transparent huge pages of 2 MiB
registered_1gib: the same on pages of 1 GiB, which the system must have set aside
host_numa: CUDA's virtual memory, created on the host's NUMA node next to the GPU
aliased: 1 GiB of memory at as many addresses as it takes, each of them page-locked
device: memory of the GPU"""

GIB: Final = 2**30

TILE: Final = 64 * 2**20 + 16 * 1001
"""Bytes after which the content repeats: no power of two is a multiple of it, so bytes that are a
power of two apart differ."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PRIVATE: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_MAP_FIXED: Final = 0x10
_MAP_HUGETLB_1GIB: Final = 0x40000 | 30 << 26
_MAP_FAILED: Final = ctypes.c_void_p(-1).value


class LargePool:
    """`size` bytes of page-locked memory of one kind, every page present, of random content.

    `bytes` is the memory as uint8 [size] as the CPU sees it, and must not be used after `close`;
    of device memory it is a copy. `pointer` is the address that the GPU reads. `seconds` has
    `touch`, the time in which many threads filled it, `register`, in which CUDA page-locked or
    allocated it, and after `close` also `free`.

    FieldError for a kind that is not in KINDS or a size below 1. Skip if the pool is larger than
    `largest_pool`, or if the system or CUDA refuses it; nothing then stays allocated.
    """

    def __init__(
        self, size: int, rng: np.random.Generator, memory: str = "registered_huge"
    ) -> None:
        require_known("memory", memory, KINDS)
        if size < 1:
            raise FieldError("size", "at least 1", size)
        if size > (limit := largest_pool()):
            raise Skip(f"a pool of {size} B: this host allows {limit} B")
        self.memory = memory
        self.seconds: dict[str, float] = {}
        self._undo = ExitStack()
        try:
            self._make(size, rng)
        except (CudaError, OSError) as error:
            self.close()
            raise Skip(f"a pool of {size} B of {memory} memory: {error}") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Undo what was registered, mapped and allocated, latest first. Idempotent."""
        with self._timed("free"):
            self._undo.close()

    def __del__(self) -> None:
        # CUDA must release page-locked memory before it is returned to the system.
        if hasattr(self, "_undo"):
            self.close()

    def _make(self, size: int, rng: np.random.Generator) -> None:
        if allocate := _BY_CUDA.get(self.memory):
            with self._timed("register"):
                self.pointer = allocate(size, self._undo)
            self.bytes = bytes_at(self.pointer, size)
            with self._timed("touch"):
                fill(self.bytes, rng)
            return
        self.pointer = _FROM_SYSTEM[self.memory](size, self._undo)
        self.bytes = bytes_at(self.pointer, size)
        with self._timed("touch"):
            fill(self.bytes[:GIB] if self.memory == "aliased" else self.bytes, rng)
        have = huge_bytes(self.pointer) if self.memory == "registered_huge" else size
        if have < size // 2:
            raise NoHugePages(f"{have} of {size} B on transparent huge pages")
        with self._timed("register"):
            if self.memory == "device":
                self.pointer = _copied_to_device(self.bytes, self._undo)
            else:
                self._register(size)

    def _register(self, size: int) -> None:
        """Page-lock the memory for every GPU: an aliased one address by address, else all of it at
        once."""
        piece = GIB if self.memory == "aliased" else size
        for start in range(0, size, piece):
            at = self.pointer + start
            length = min(piece, size - start)
            cuda(cudart.cudaHostRegister(at, length, cudart.cudaHostRegisterPortable))
            self._undo.callback(_release, cudart.cudaHostUnregister, at)

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        """Time a part; only the first time counts."""
        start = time.perf_counter_ns()
        yield
        self.seconds.setdefault(part, (time.perf_counter_ns() - start) * 1e-9)


def fill(memory: Bytes, rng: np.random.Generator) -> None:
    """Fill `memory` with a random tile again and again, by all CPUs that this process may use."""
    tile = random_bytes(min(memory.size, TILE), rng)

    def copy(start: int) -> None:
        piece = memory[start : start + TILE]
        piece[:] = tile[: piece.size]  # NumPy lets other threads run meanwhile

    list(threads().map(copy, range(0, memory.size, TILE)))


def _pinned(size: int, undo: ExitStack) -> int:
    pointer = int(cuda(cudart.cudaHostAlloc(size, cudart.cudaHostAllocMapped)))
    undo.callback(_release, cudart.cudaFreeHost, pointer)
    return pointer


def _host_numa(size: int, undo: ExitStack) -> int:
    """Memory of CUDA's virtual memory management on the NUMA node next to the current GPU."""
    cuda(cudart.cudaFree(0))  # makes the context that the driver's functions work in
    device = int(cuda(cudart.cudaGetDevice()))
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID
    kinds = driver.CUmemLocationType
    node = int(_drive("cuDeviceGetAttribute", attribute, device))
    places = [
        _location(kinds.CU_MEM_LOCATION_TYPE_HOST_NUMA, node),
        _location(kinds.CU_MEM_LOCATION_TYPE_DEVICE, device),
    ]
    property_ = driver.CUmemAllocationProp()
    property_.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    property_.location = places[0]
    minimum = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    unit = int(_drive("cuMemGetAllocationGranularity", property_, minimum))
    whole = -(-size // unit) * unit
    handle = _drive("cuMemCreate", whole, property_, 0)
    undo.callback(_drive, "cuMemRelease", handle)
    pointer = int(_drive("cuMemAddressReserve", whole, unit, 0, 0))
    undo.callback(_drive, "cuMemAddressFree", pointer, whole)
    _drive("cuMemMap", pointer, whole, 0, handle, 0)
    undo.callback(_drive, "cuMemUnmap", pointer, whole)
    access = [driver.CUmemAccessDesc() for _ in places]
    for description, place in zip(access, places, strict=True):
        description.location = place
        description.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    _drive("cuMemSetAccess", pointer, whole, access, len(access))
    return pointer


def _location(kind: driver.CUmemLocationType, number: int) -> driver.CUmemLocation:
    location = driver.CUmemLocation()
    location.type = kind
    location.id = number
    return location


def _drive(name: str, *arguments: Any) -> Any:
    """The value of a call of the driver; CudaError if it failed."""
    status, *values = getattr(driver, name)(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise CudaError(f"CUDA: {name}: {status.name}")
    return values[0] if values else None


def _anonymous(size: int, undo: ExitStack, advice: int) -> int:
    """Anonymous pages that start at a huge-page boundary. The default differs between machines, so
    the kernel gets a hint which pages to use."""
    room = -(-size // HUGE_PAGE) * HUGE_PAGE + HUGE_PAGE
    start = _mapped(room, undo, _PRIVATE)
    # A kernel without huge pages refuses both; all its pages have the base size.
    if _libc.madvise(start, room, advice) and advice == mmap.MADV_HUGEPAGE:
        raise NoHugePages(f"the kernel has none: {os.strerror(ctypes.get_errno())}")
    return -(-start // HUGE_PAGE) * HUGE_PAGE


def _gigantic(size: int, undo: ExitStack) -> int:
    """Pages of 1 GiB. OSError if the system has set too few aside."""
    return _mapped(-(-size // GIB) * GIB, undo, _PRIVATE | _MAP_HUGETLB_1GIB)


def _aliased(size: int, undo: ExitStack) -> int:
    """One GiB of memory at as many neighbouring addresses as make `size` bytes."""
    file = os.memfd_create("pool")
    undo.callback(os.close, file)
    os.truncate(file, GIB)
    whole = -(-size // GIB) * GIB
    start = _mapped(whole, undo, _PRIVATE)
    for at in range(start, start + whole, GIB):
        _map(at, GIB, mmap.MAP_SHARED | _MAP_FIXED, file)
    return start


def _mapped(size: int, undo: ExitStack, flags: int) -> int:
    """The address of new memory of the system. OSError if it is refused."""
    address = _map(None, size, flags, -1)
    undo.callback(_libc.munmap, address, size)
    return address


def _map(address: int | None, size: int, flags: int, file: int) -> int:
    found = _libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, 0)
    if found is None or found == _MAP_FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(found)


def _copied_to_device(host: Bytes, undo: ExitStack) -> int:
    pointer = int(cuda(cudart.cudaMalloc(host.size)))
    undo.callback(_release, cudart.cudaFree, pointer)
    kind = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
    cuda(cudart.cudaMemcpy(pointer, host.ctypes.data, host.size, kind))
    return pointer


def _release(call: Callable[[int], tuple[Any, ...]], pointer: int) -> None:
    cuda(call(pointer))


_Allocate = Callable[[int, ExitStack], int]
_BY_CUDA: Final[dict[str, _Allocate]] = {"pinned": _pinned, "host_numa": _host_numa}
_FROM_SYSTEM: Final[dict[str, _Allocate]] = {
    "registered": partial(_anonymous, advice=mmap.MADV_NOHUGEPAGE),
    "registered_huge": partial(_anonymous, advice=mmap.MADV_HUGEPAGE),
    "registered_1gib": _gigantic,
    "aliased": _aliased,
    "device": partial(_anonymous, advice=mmap.MADV_HUGEPAGE),
}
