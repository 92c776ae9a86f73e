"""A PyTorch tensor over gigabytes of pinned host memory, several times as fast as pin_memory().

    pool = PinnedPool(16 << 30)
    rows = pool.tensor.view(-1, 656)[:1000]  # or any other view of these bytes
    pool.copy(on_gpu, rows)

Needs Linux and PyTorch with CUDA. Threads clear huge pages; then one registers them in chunks, as
the driver's lock admits one at a time and is free between two chunks. CUDA refuses a copy across
the border of two chunks, so copy() splits it. `python pin.py [--json] [--gib N]` measures it beside
PyTorch's way.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

HUGE_PAGE = 2**21
MADV_POPULATE_WRITE = 23  # Linux 5.14
PORTABLE = 1  # cudaHostRegisterPortable: pinned for all devices
LIBC = ctypes.CDLL(None, use_errno=True)


def free_host_bytes() -> int:
    """Bytes of host memory that this process may still take, in a container too."""
    words = Path("/proc/meminfo").read_text().split()
    free = int(words[words.index("MemAvailable:") + 1]) * 1024
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):  # no container, or one without a limit
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        free = min(free, max(limit - used, 0))
    return free


def parts(offset: int, size: int, chunk_bytes: int) -> Iterator[tuple[int, int]]:
    """Begin and end, relative to `offset`, of each part of a copy that is split between chunks."""
    begin = 0
    while begin < size:
        end = min(size, begin + chunk_bytes - (offset + begin) % chunk_bytes)
        yield begin, end
        begin = end


class PinnedPool:
    """`tensor`: uint8 [size], zeros in pinned host memory until close()."""

    def __init__(self, size: int, chunk_bytes: int = 256 << 20, threads: int = 0) -> None:
        """`chunk_bytes` is a multiple of 2 MiB: 64 MiB are better beside processes that allocate
        device memory. Raises ValueError for more than is free, RuntimeError with CUDA's first
        error."""
        room = free_host_bytes()
        if not 0 < size <= room:
            raise ValueError(f"size: expected 1 to {room} bytes, all that are free, got {size}")
        if chunk_bytes < 1 or chunk_bytes % HUGE_PAGE:
            raise ValueError(f"chunk_bytes: expected a multiple of 2 MiB, got {chunk_bytes}")
        import torch

        self._torch, self._chunk_bytes = torch, chunk_bytes
        self._map = mmap.mmap(-1, size + HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError):  # without huge pages it is only slower
            self._map.madvise(mmap.MADV_HUGEPAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.tensor = torch.frombuffer(
            self._map, dtype=torch.uint8, count=size, offset=-address % HUGE_PAGE
        )
        self._begin = self.tensor.data_ptr()
        self._registered: list[int] = []
        chunks = range(self._begin, self._begin + size, chunk_bytes)
        with ThreadPoolExecutor(threads or min(16, len(os.sched_getaffinity(0)))) as pool:
            list(pool.map(self._touch, chunks))
        try:
            for chunk in chunks:
                self._register(chunk)
        except RuntimeError:
            self.close()
            raise

    def copy(self, to: Any, source: Any) -> None:
        """Enqueue a copy on the current stream. One of the contiguous tensors is a view of
        `tensor`, the other one lies on a GPU; both have the same number of bytes."""
        to, source = (each.view(-1).view(self._torch.uint8) for each in (to, source))
        host = source if to.is_cuda else to
        for begin, end in parts(host.data_ptr() - self._begin, len(to), self._chunk_bytes):
            to[begin:end].copy_(source[begin:end], non_blocking=True)

    def close(self) -> None:
        """Unpin the memory, which no copy or kernel may use any more."""
        while self._registered:
            self._torch.cuda.cudart().cudaHostUnregister(self._registered.pop())

    def _size(self, address: int) -> int:
        """Bytes of the chunk at this address."""
        return min(self._chunk_bytes, self._begin + len(self.tensor) - address)

    def _touch(self, address: int) -> None:
        memory, size = ctypes.c_void_p(address), self._size(address)
        if LIBC.madvise(memory, ctypes.c_size_t(size), MADV_POPULATE_WRITE):
            ctypes.memset(memory, 0, size)

    def _register(self, address: int) -> None:
        status = self._torch.cuda.cudart().cudaHostRegister(address, self._size(address), PORTABLE)
        self._torch.cuda.check_error(int(status))
        self._registered.append(address)


def measure(size: int) -> dict[str, float]:
    """Seconds by PyTorch, by PinnedPool, and to unpin, after a check of split copies."""
    import torch

    torch.cuda.init()
    begin = time.perf_counter()
    pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    seconds = {"bytes": size, "torch_s": time.perf_counter() - begin}
    del pinned
    torch._C._host_emptyCache()
    begin = time.perf_counter()
    pool = PinnedPool(size)
    seconds["pin_s"] = time.perf_counter() - begin
    around_border = pool.tensor[(255 << 20) + 1 : (257 << 20) + 6]
    expected = torch.randint(256, around_border.shape, dtype=torch.uint8)
    around_border.copy_(expected)
    on_gpu = torch.empty_like(expected, device="cuda")
    pool.copy(on_gpu, around_border)
    around_border.zero_()
    pool.copy(around_border, on_gpu)
    torch.cuda.synchronize()
    if not torch.equal(around_border, expected) or not pool.tensor.is_pinned():
        sys.exit("error: copies across the border of chunks: expected equal bytes, got others")
    begin = time.perf_counter()
    pool.close()
    return {**seconds, "unpin_s": time.perf_counter() - begin}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--gib", type=float, default=16, help="at least 0.5")
    given = parser.parse_args()
    figures = measure(int(given.gib * 1024) << 20)
    text = "\n".join(f"{name:10} {value:g}" for name, value in figures.items())
    print(json.dumps(figures) if given.json else text)
