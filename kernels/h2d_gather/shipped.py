"""Copies of scattered rows that serving engines ship."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.common.shipped import Copies, load_copy, on_device


def load(operator: str) -> None:
    """Compile and load the operator."""
    load_copy(operator)


def bind(src: np.ndarray, dst: Any, pairs: Any, sm_launches: Any, *, operator: str) -> Copies:
    """Like bindings.cpp, for one of the operators of kernels/common/shipped.py."""
    del sm_launches
    lists = on_device(pairs).view(1, -1, 2).long()
    return Copies(operator, 0, src, on_device(dst), lists[..., 0], lists[..., 1])
