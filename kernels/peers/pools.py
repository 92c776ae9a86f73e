"""Pools of rows in the memory of each GPU and of the host, and the rows expected from them."""

from __future__ import annotations

import numpy as np
from cuda.bindings import runtime as cudart

from analysis.api.measure import Skip
from analysis.api.memory import DeviceArray, cuda, on_gpu
from kernels.common.arrays import Bytes
from kernels.common.large_pool import TILE, LargePool
from kernels.common.parallel import in_parallel
from kernels.common.random_bytes import random_bytes
from kernels.common.shared_pool import largest_that_fits

VECTOR = 16
MAX_ROW_BYTES = 4096
LARGEST_SHARE = 0.5
"""Largest share of a GPU's memory that a pool may take."""


class Pool:
    """`size` bytes at `pointer` that repeat a random `tile`."""

    def __init__(self, pointer: int, size: int, tile: Bytes) -> None:
        self.pointer, self.size = pointer, size
        self._period = tile.size
        # A row that begins in the tile is contiguous here.
        self._bytes = np.resize(tile, tile.size + MAX_ROW_BYTES)

    def gather(self, rows: np.ndarray, out: Bytes) -> None:
        """Copy these rows to `out`, uint8 [len(rows), row_bytes], by several threads."""
        row_bytes = out.shape[1]
        row = np.dtype(f"V{row_bytes}")
        places = np.ndarray((self._period // VECTOR,), row, self._bytes, strides=(VECTOR,))
        landed = out.view(row).ravel()
        starts = rows.astype(np.int64) * row_bytes % self._period // VECTOR

        def some(part: slice) -> None:
            landed[part] = places[starts[part]]

        in_parallel(some, len(rows), row_bytes)


class Pools:
    """A pool in host memory and in that of each GPU, made at first use and kept for the whole
    process."""

    def __init__(self, largest: int, rng: np.random.Generator) -> None:
        """`largest`: bytes of the host's pool."""
        self._largest, self._rng = largest, rng
        self._host: tuple[LargePool, Pool] | None = None
        self._on_gpus: dict[int, tuple[DeviceArray, Pool]] = {}

    def of_host(self, size: int) -> Pool:
        """A pool of at least `size` bytes; see `largest_that_fits`."""
        if self._host is None or self._host[1].size < size:
            self._host = None  # frees it before a new one is made
            memory = largest_that_fits(size, self._largest, self._rng)
            # The tile is read at the end, which only the largest pool uses: no other row may be
            # cached.
            period = min(memory.bytes.size, TILE)
            last = (memory.bytes.size // period - 1) * period
            tile = memory.bytes[last : last + period].copy()
            self._host = memory, Pool(memory.pointer, memory.bytes.size, tile)
        return self._host[1]

    def of_gpu(self, gpu: int, size: int) -> Pool:
        """A pool of at least `size` bytes. Skip if they are more than half of the GPU's memory, or
        do not fit."""
        if gpu not in self._on_gpus or self._on_gpus[gpu][1].size < size:
            self._on_gpus.pop(gpu, None)
            if size > (limit := room(gpu)):
                raise Skip(
                    f"a pool of {size} B: GPU {gpu} allows {limit} B, {LARGEST_SHARE:.0%} of its "
                    "memory or what is free"
                )
            memory = DeviceArray((size,), np.uint8, "pool", gpu)
            tile = random_bytes(min(size, TILE), self._rng)
            fill(memory, tile)
            self._on_gpus[gpu] = memory, Pool(memory.pointer, size, tile)
        return self._on_gpus[gpu][1]

    def close(self) -> None:
        """Free all pools."""
        self._on_gpus.clear()
        if self._host is not None:
            self._host[0].close()
            self._host = None


def room(gpu: int) -> int:
    """Bytes that a pool may take in memory of this GPU now."""
    with on_gpu(gpu):
        free, total = cuda(cudart.cudaMemGetInfo())
    return min(int(free), int(LARGEST_SHARE * total))


def fill(memory: DeviceArray, tile: Bytes) -> None:
    """Fill `memory` with copies of the tile, by doubling the filled part."""
    with on_gpu(memory.gpu):
        kinds = cudart.cudaMemcpyKind
        to_device, on_device = kinds.cudaMemcpyHostToDevice, kinds.cudaMemcpyDeviceToDevice
        cuda(cudart.cudaMemcpy(memory.pointer, tile.ctypes.data, tile.size, to_device))
        done = tile.size
        while done < memory.nbytes:
            length = min(done, memory.nbytes - done)
            cuda(cudart.cudaMemcpy(memory.pointer + done, memory.pointer, length, on_device))
            done += length
        cuda(cudart.cudaDeviceSynchronize())
