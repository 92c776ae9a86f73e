"""vLLM's hisparse, as its release ships it: a kernel resolves, another one fetches."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from kernels.hot_set.vllm_hisparse import Bound, load

from .shipped_layers import ShippedLayers

__all__ = ["bind", "load"]


def bind(pool: np.ndarray, cpus: list[int], *, table: str, **arrays: torch.Tensor) -> ShippedLayers:
    """Like bindings.cpp. table: default or roomy, as in the study hot_set."""
    del cpus

    def held(bound: Any) -> torch.Tensor:
        places: torch.Tensor = bound._owners
        return places

    return ShippedLayers(partial(Bound, table=table, table_size=None), held, pool, arrays)
