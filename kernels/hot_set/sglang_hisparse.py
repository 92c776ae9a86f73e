"""The step of sglang's hisparse: one kernel, a block a request, as its wheel ships it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from analysis.api.peers import sglang_module
from analysis.api.torch import use
from kernels.common.shipped import on_device

from .shipped_state import State

BLOCK: Final = 960
"""Threads of a block, which its coordinator takes."""
TOPK: Final = 2048
SLOTS: Final = 4096


class Bound:
    """The hot sets of one layer. The kernel keeps the row of each slot and the order of use."""

    def __init__(self, pool: np.ndarray, state: State) -> None:
        if (state.topk, state.slots) != (TOPK, SLOTS):
            got = f"{state.topk} and {state.slots}"
            raise ValueError(f"topk and slots: expected {TOPK} and {SLOTS}, got {got}")
        self._entry = load()
        self._state = state
        requests, slots = state.requests, state.slots
        cuda = {"device": "cuda"}
        # Behind each request's slots is a place for its newest row, which no step asks for.
        self._rows = torch.full((requests, slots + 1), -1, dtype=torch.int32, **cuda)
        firsts = torch.arange(requests, dtype=torch.int32, **cuda)[:, None] * slots
        at = torch.arange(slots + 1, dtype=torch.int32, **cuda).clamp(max=slots - 1)
        self._locations = (firsts + at).contiguous()
        self._places = state.places.long()
        self._order = torch.arange(slots, dtype=torch.int16, **cuda).repeat(requests, 1)
        self._indices = torch.arange(requests, dtype=torch.int64, **cuda)
        lengths = state.places.shape[1] + 1
        self._lengths = torch.full((requests,), lengths, dtype=torch.int64, **cuda)
        self._count = torch.full((1,), requests, dtype=torch.int32, **cuda)
        self._out = torch.empty((requests, TOPK), dtype=torch.int32, **cuda)
        self._none = torch.empty(0, **cuda)
        self._pool = torch.from_numpy(pool)
        self._buffer = state.hot.view(requests * slots, -1)
        self._ids = torch.empty((requests, TOPK), dtype=torch.int32, **cuda)

    def advance(self, stream: int, index: int, number: int) -> None:
        del number
        use(stream)
        self._ids.copy_(self._state.trace[index])

    def launch(self, stream: int) -> None:
        use(stream)
        none = self._none
        self._entry(
            *(self._ids, self._rows, self._places, self._locations, self._pool, none),
            *(self._buffer, none, self._out, self._indices, self._lengths, self._order),
            *(self._count, 1, self._pool.shape[1], none, none, none),
        )

    def publish(self) -> None:
        self._state.publish(self._out, self._rows[:, : self._state.slots])

    def flush(self, pool_rows: np.ndarray) -> bool:
        del pool_rows
        return False

    def close(self) -> None:
        self.__dict__.clear()


def load() -> Any:
    """Its function, compiled at first use."""
    # Of rows of one key without values; block ids, recorded plans and a step without bytes are off.
    template = f"{BLOCK}, {TOPK}, {SLOTS}, true, false, 1, false, false, false"
    name = "load_cache_to_device_buffer"
    return getattr(sglang_module("hisparse.cuh", {name: f"{name}<{template}>"}), name)


def bind(pool: np.ndarray, cpus: list[int], share_32nds: int = -1, **arrays: Any) -> Bound:
    """Like bindings.cpp, for one layer."""
    del cpus, share_32nds
    return Bound(pool, State({name: on_device(array) for name, array in arrays.items()}))
