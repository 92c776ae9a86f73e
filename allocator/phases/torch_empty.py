"""An empty tensor, as a user of PyTorch creates it."""

from __future__ import annotations

import torch

ELEMENT_BYTES = 4

forget = torch.cuda.empty_cache


def make_storage(nbytes: int) -> torch.Tensor:
    """A float32 tensor of at least `nbytes`."""
    return torch.empty(-(-nbytes // ELEMENT_BYTES), device="cuda")
