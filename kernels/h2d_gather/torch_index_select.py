"""A gather on the CPU into pinned staging memory, then one non-blocking copy, as in a PyTorch
user's code."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


class Bound:
    """One gather; `launch` returns once the copy is enqueued."""

    def __init__(self, src: np.ndarray, dst: Any, pairs: Any) -> None:
        self._src = torch.from_numpy(src)
        self._dst = torch.as_tensor(dst, device="cuda")
        self._pairs = torch.as_tensor(pairs, device="cuda").view(-1, 2)
        rows = self._pairs.shape[0]
        self._staging = torch.empty((rows, src.shape[1]), dtype=torch.uint8, pin_memory=True)
        self.row_bytes = src.shape[1]
        expected = torch.arange(rows, dtype=torch.int32, device="cuda")
        if not torch.equal(self._pairs[:, 1], expected):
            raise ValueError(
                "pairs: expected destination rows 0, 1, 2 ... for one copy, got others"
            )

    def launch(self, stream: int) -> None:
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            rows = self._pairs[:, 0].cpu()
            torch.index_select(self._src, 0, rows, out=self._staging)
            self._dst[: len(rows)].copy_(self._staging, non_blocking=True)


def bind(src: np.ndarray, dst: Any, pairs: Any, sm_launches: Any = None) -> Bound:
    """Like bindings.cpp: src uint8 [cpu_slots, token_bytes] pinned, dst and pairs in GPU memory.

    ValueError if the destination rows are not 0, 1, 2 ...
    """
    return Bound(src, dst, pairs)
