"""The step of vLLM's hisparse, as its release ships it: a kernel resolves, another one fetches."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from analysis.api.peers import vllm_operators
from analysis.api.torch import use
from kernels.common.shipped import on_device

from .shipped_state import State

BLOCK_ROWS: Final = 64
"""Rows of a block of its cache."""


class Bound:
    """The hot sets of one layer. Rows are named by their place in the pool."""

    def __init__(self, pool: np.ndarray, state: State, table: str, table_size: int | None) -> None:
        self._operators = load(table)
        self._state = state
        requests, topk, slots = state.requests, state.topk, state.slots
        # Its runtime makes room for the ids of a step. A table as large as the hot set is roomy.
        self._union_rows = slots if table == "roomy" else topk
        if table_size is not None:
            self._union_rows = table_size - 1
        cuda = {"device": "cuda"}
        blocks = torch.arange(requests * slots // BLOCK_ROWS, dtype=torch.int32, **cuda)
        self._blocks = blocks.view(requests, -1)
        self._owners = torch.full((requests, slots), -1, dtype=torch.int32, **cuda)
        self._order = torch.arange(slots, dtype=torch.int16, **cuda).repeat(requests, 1)
        self._states = torch.arange(requests, dtype=torch.int32, **cuda)
        shape = requests, topk
        self._ids, self._out, self._attention, self._from, self._to = (
            torch.zeros(shape, dtype=torch.int32, **cuda) for _ in range(5)
        )
        self._counts = torch.zeros(requests, dtype=torch.int32, **cuda)
        self._statistics = torch.zeros(2, dtype=torch.int64, **cuda).view(torch.uint64)
        self._pool = torch.from_numpy(pool)
        self._hot = state.hot.view(-1, BLOCK_ROWS, pool.shape[1])
        self._sorted, self._sorted_rows = state.places.sort(dim=1)

    def advance(self, stream: int, index: int, number: int) -> None:
        del number
        use(stream)
        self._ids.copy_(self._state.places.gather(1, self._state.trace[index].long()))

    def launch(self, stream: int) -> None:
        use(stream)
        self._operators.hisparse_resolve_residency(
            *(self._pool, self._hot, self._blocks, self._ids, self._out, self._owners),
            *(self._order, self._states, self._state.slots, self._union_rows, None),
            *(self._statistics, self._attention, BLOCK_ROWS, None, None, 0, None, None),
            *(self._from, self._to, self._counts, None, 0, 0),
        )
        self._operators.hisparse_gather_compact(
            self._pool, self._hot, self._from, self._to, self._counts
        )

    def publish(self) -> None:
        """The row of each slot from its place in the pool, which a context has only once."""
        at = torch.searchsorted(self._sorted, self._owners).clamp(max=self._sorted.shape[1] - 1)
        is_held = self._sorted.gather(1, at) == self._owners
        rows = torch.where(is_held, self._sorted_rows.gather(1, at), -1).int()
        self._state.publish(self._out, rows)

    def flush(self, pool_rows: np.ndarray) -> bool:
        del pool_rows
        return False

    def close(self) -> None:
        self.__dict__.clear()


def load(table: str) -> Any:
    """Its operators, compiled at first use."""
    del table
    names = ["hisparse_resolve_residency", "hisparse_gather_compact"]
    return vllm_operators("hisparse_kernels.cu", names, "CUDA")


def bind(
    pool: np.ndarray,
    cpus: list[int],
    share_32nds: int = -1,
    *,
    table: str,
    table_size: int | None = None,
    **arrays: Any,
) -> Bound:
    """Like bindings.cpp, for one layer.

    table: default or roomy; its places are `table_size`, if that is given
    """
    del cpus, share_32nds
    state = State({name: on_device(array) for name, array in arrays.items()})
    return Bound(pool, state, table, table_size)
