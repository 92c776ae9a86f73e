"""A small copy on one stream, enqueued behind a large one to the same side on another stream."""

from __future__ import annotations

import time
from typing import NamedTuple

import torch

from analysis.api.measure import PythonLauncher
from analysis.api.memory import cuda, cudart, synchronize
from analysis.api.torch import use


class Copy(NamedTuple):
    """Bytes from pinned host memory to the device, by address."""

    to: int
    source: int
    size: int


class Bound(PythonLauncher):
    """Every launch enqueues the large copy, in pieces of `chunk_bytes`, then the small one.

    `has_kernels`: whether a kernel of one element runs between two pieces.
    """

    def __init__(self, small: Copy, large: Copy, chunk_bytes: int, has_kernels: bool) -> None:
        starts = range(0, large.size, chunk_bytes)
        self._small, self._large = small, large
        self._pieces = [
            Copy(large.to + at, large.source + at, min(chunk_bytes, large.size - at))
            for at in starts
        ]
        self._element = torch.zeros(1, device="cuda") if has_kernels else None
        self._aside = torch.cuda.Stream()

    def _launch(self, stream: int) -> None:
        self._enqueue_large()
        enqueue(self._small, stream)
        synchronize(self._aside.cuda_stream)

    def _enqueue_large(self) -> None:
        use(self._aside.cuda_stream)
        for piece in self._pieces:
            enqueue(piece, self._aside.cuda_stream)
            if self._element is not None:
                self._element.add_(1)

    def small_seconds(self, stream: int, is_behind: bool) -> float:
        """Host time from the call of the small copy until it has arrived."""
        if is_behind:
            self._enqueue_large()
        begin = time.perf_counter()
        enqueue(self._small, stream)
        synchronize(stream)
        seconds = time.perf_counter() - begin
        synchronize(self._aside.cuda_stream)
        return seconds


def enqueue(copy: Copy, stream: int) -> None:
    cuda(cudart.cudaMemcpyAsync(*copy, cudart.cudaMemcpyKind.cudaMemcpyHostToDevice, stream))


def bind(small: Copy, large: Copy, chunk_bytes: int, has_kernels: bool) -> Bound:
    return Bound(Copy(*small), Copy(*large), chunk_bytes, has_kernels)
