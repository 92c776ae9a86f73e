"""PyTorch's fill_, on a tensor over the same memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from analysis.api.torch import use


def bind(array: Any, value: float) -> Callable[[int], None]:
    """A launch that fills `array`, which has __cuda_array_interface__, with `value`."""
    tensor = torch.as_tensor(array, device="cuda")

    def launch(stream: int) -> None:
        use(stream)
        tensor.fill_(value)

    return launch
