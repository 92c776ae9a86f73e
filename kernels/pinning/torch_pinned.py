"""Pinned memory as engines get it from PyTorch, whose allocator caches it."""

from __future__ import annotations

import time
from functools import partial

import torch

from analysis.api.memory import cuda, cudart


def held_bytes() -> int:
    """Bytes of pinned memory that PyTorch has from CUDA."""
    statistics = torch.cuda.host_memory_stats()
    names = ("reserved_bytes.current", "allocated_bytes.current")  # the second in older releases
    return int(next(statistics[name] for name in names if name in statistics))


class Pinned:
    """A pinned tensor of `size` bytes. It is one registration, and PyTorch touches no page itself.

    `pinned_ns` is begin and end of the call, `held_bytes` what PyTorch got from CUDA for it.
    """

    touch_ns = register_ns = 0

    def __init__(self, size: int, chunk_bytes: int, threads: int) -> None:
        del chunk_bytes, threads
        self.chunk_bytes = size
        before, begin = held_bytes(), time.monotonic_ns()
        self._tensor: torch.Tensor | None = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        self.pinned_ns = begin, time.monotonic_ns()
        self.held_bytes = held_bytes() - before
        self.address = self._tensor.data_ptr()

    def copy(self, device: int, offset: int, size: int, to_device: bool, stream: int) -> None:
        """Copy `size` bytes from `offset` on, to the device or back."""
        cuda(self._copied(device, offset, size, to_device, stream))

    def copy_as_one(self, device: int, offset: int, size: int, to_device: bool, stream: int) -> int:
        """The same; returns CUDA's status."""
        return int(self._copied(device, offset, size, to_device, stream)[0])

    def copy_lines(self, device: int, line: int, pitch: int, stream: int) -> None:
        """Copy the first `line` bytes of every `pitch` bytes to the device."""
        lines, kind = self.chunk_bytes // pitch, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
        copy = partial(cudart.cudaMemcpy2DAsync, device, line, self.address, pitch, line)
        cuda(copy(lines, kind, stream))

    def unpin(self) -> tuple[int, int]:
        """Free the memory, also in PyTorch's cache; returns begin and end."""
        begin = time.monotonic_ns()
        self._tensor = None
        torch._C._host_emptyCache()
        return begin, time.monotonic_ns()

    def __del__(self) -> None:
        if self._tensor is not None:
            self.unpin()

    def _copied(
        self, device: int, offset: int, size: int, to_device: bool, stream: int
    ) -> tuple[cudart.cudaError_t]:
        kinds = cudart.cudaMemcpyKind
        host = self.address + offset
        if to_device:
            kind, places = kinds.cudaMemcpyHostToDevice, (device, host)
        else:
            kind, places = kinds.cudaMemcpyDeviceToHost, (host, device)
        status: tuple[cudart.cudaError_t] = cudart.cudaMemcpyAsync(*places, size, kind, stream)
        return status
