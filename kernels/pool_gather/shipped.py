"""Copies of scattered rows that serving engines ship."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from kernels.common.shipped import Copies, load_copy, on_device


class Bound(Copies):
    """Every launch copies the next set, whose number is then in `current`, int64 [1]."""

    def __init__(
        self,
        operator: str,
        blocks: int,
        pool: np.ndarray,
        dst: torch.Tensor,
        pairs: Any,
        current: np.ndarray,
    ) -> None:
        lists = on_device(pairs).long()
        self._current = current
        self._sets = len(lists)
        super().__init__(operator, blocks, pool, dst, lists[..., 0], lists[..., 1])

    def _launch(self, stream: int) -> None:
        self._current[0] = (self._current[0] + 1) % self._sets
        self.select(int(self._current[0]))
        super()._launch(stream)


def load(operator: str) -> None:
    """Compile and load the operator."""
    load_copy(operator)


def bind(
    pool: np.ndarray,
    dst: Any,
    pairs: Any,
    current: np.ndarray,
    *,
    operator: str,
    blocks: int = 0,
    **others: Any,
) -> Bound:
    """Like bindings.cpp, for one of the operators of kernels/common/shipped.py."""
    del others
    return Bound(operator, blocks, pool, on_device(dst), pairs, current)
