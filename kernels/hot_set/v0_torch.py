"""A step in PyTorch: tensors hold the state, the CPU gathers the missing rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def _stream(stream: int) -> torch.cuda.Stream:
    """PyTorch's object for a stream. An ExternalStream of 0 would be a new stream."""
    return torch.cuda.ExternalStream(stream) if stream else torch.cuda.default_stream()


class Bound:
    """The hot sets of one layer. `launch` returns when the rows are on the GPU."""

    def __init__(self, pool: np.ndarray, arrays: dict[str, torch.Tensor]) -> None:
        self._pool = torch.from_numpy(pool)
        self._places = arrays["places"][0]
        self._trace = arrays["ids"]
        self._out = arrays["out"][0]
        self._rows = arrays["rows"][0]
        self._last_used = arrays["last_used"][0]
        requests, slots = self._rows.shape
        self._hot = arrays["hot"].view(requests * slots, -1)
        context_rows = self._places.shape[1]
        # The last column takes the entries of free slots, whose row is -1.
        self._slot_of = torch.full((requests, context_rows + 1), -1, device="cuda")
        self._ids = torch.empty(self._trace.shape[1:], dtype=torch.int64, device="cuda")
        self._staging = torch.empty(
            (self._ids.numel(), pool.shape[1]), dtype=torch.uint8, pin_memory=True
        )
        self._step = 0

    def advance(self, stream: int, index: int, number: int) -> None:
        with torch.cuda.stream(_stream(stream)):
            self._ids.copy_(self._trace[index])
        self._step = number

    def launch(self, stream: int) -> None:
        with torch.cuda.stream(_stream(stream)):
            slot = self._slot_of.gather(1, self._ids)
            request, at = (slot >= 0).nonzero(as_tuple=True)
            self._last_used[request, slot[request, at]] = self._step
            request, at = (slot < 0).nonzero(as_tuple=True)
            if len(request):
                self._fetch(request, self._ids[request, at])
            self._out.copy_(self._slot_of.gather(1, self._ids))

    def _fetch(self, request: torch.Tensor, row: torch.Tensor) -> None:
        """Fetch rows of these requests, which may repeat, in place of the oldest ones."""
        requests, slots = self._rows.shape
        stride = self._slot_of.shape[1]
        missing = torch.unique(request * stride + row)
        request, row = missing // stride, missing % stride
        counts = torch.bincount(request, minlength=requests)
        rank = torch.arange(len(row), device="cuda") - (counts.cumsum(0) - counts)[request]
        age = (self._last_used.long() << 32) + self._rows
        slot = age.argsort(1)[request, rank]
        self._slot_of[request, self._rows[request, slot].long()] = -1
        self._slot_of[request, row] = slot
        self._rows[request, slot] = row.int()
        self._last_used[request, slot] = self._step
        staged = self._staging[: len(row)]
        torch.index_select(self._pool, 0, self._places[request, row].cpu(), out=staged)
        # Not non_blocking: PyTorch would record an event on this stream when it frees the staging
        # memory, and the stream may be gone by then.
        self._hot.index_copy_(0, request * slots + slot, staged.to("cuda"))

    def flush(self, pool_rows: np.ndarray) -> bool:
        del pool_rows
        return False

    def publish(self) -> None:
        """All state is in the arrays."""

    def close(self) -> None:
        self.__dict__.clear()


def bind(pool: np.ndarray, cpus: list[int], share_32nds: int = -1, **arrays: Any) -> Bound:
    """Like bindings.cpp, for one layer."""
    del cpus, share_32nds
    tensors = {name: torch.as_tensor(array, device="cuda") for name, array in arrays.items()}
    layers = len(tensors["rows"])
    if layers != 1:
        raise ValueError(f"rows: expected one layer, got {layers}")
    return Bound(pool, tensors)
