"""sglang's hisparse, as its wheel ships it: one kernel, a block of 960 threads a request."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from kernels.hot_set.sglang_hisparse import Bound, load

from .shipped_layers import ShippedLayers

__all__ = ["bind", "load"]


def bind(pool: np.ndarray, cpus: list[int], **arrays: torch.Tensor) -> ShippedLayers:
    """Like bindings.cpp."""
    del cpus

    def held(bound: Any) -> torch.Tensor:
        rows: torch.Tensor = bound._rows[:, :-1]  # behind a request's slots is one for a new row
        return rows

    return ShippedLayers(Bound, held, pool, arrays)
