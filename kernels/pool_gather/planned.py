"""sglang's copy of rows that another layer has missed, too: its plan lists them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from analysis.api.measure import PythonLauncher
from analysis.api.peers import sglang_module
from analysis.api.torch import use
from kernels.common.shipped import on_device

NAME: Final = "copy_cache_planned"
BLOCKS: Final = 4
"""What sglang's coordinator passes."""


def load() -> Any:
    """The function, which takes the size of a row when it is called."""
    return getattr(sglang_module("hisparse.cuh", {NAME: f"{NAME}<1024, true, false, false>"}), NAME)


class Bound(PythonLauncher):
    """Every launch copies the next set of `pairs`, int32 [sets, rows, 2] on the GPU, as the plan of
    one request. Its number is then in `current`, int64 [1]. `pool` uint8 [pool_rows, row_bytes] is
    pinned host memory, `dst` uint8 [rows, row_bytes] on the GPU."""

    def __init__(
        self, pool: np.ndarray, dst: torch.Tensor, pairs: torch.Tensor, current: np.ndarray
    ) -> None:
        self._copy, self._current = load(), current
        sources, targets = pairs.unbind(-1)  # the kernel wants both with the same row stride
        self._sources, self._targets = sources.long().contiguous(), targets.contiguous()
        rows = torch.tensor([pairs.shape[1]], dtype=torch.int32, device=dst.device)
        nothing, host = torch.empty(0, device=dst.device), torch.from_numpy(pool)
        self._counts = rows, torch.ones_like(rows)
        self._memory = host, nothing, dst, nothing, BLOCKS, pool.shape[1]

    def _launch(self, stream: int) -> None:  # PythonLauncher times it
        use(stream)
        self._current[0] = at = (int(self._current[0]) + 1) % len(self._sources)
        plan = self._sources[at : at + 1], self._targets[at : at + 1]
        self._copy(*plan, *self._counts, *self._memory)

    def flush(self, index: int) -> bool:
        """There are no threads that could flush rows from the CPU's caches."""
        del index
        return False

    def close(self) -> None:
        self.__dict__.clear()


def bind(pool: np.ndarray, dst: Any, pairs: Any, current: np.ndarray, **others: Any) -> Bound:
    """Like bindings.cpp."""
    del others
    return Bound(pool, on_device(dst), on_device(pairs), current)
