"""Pinned memory as engines get it from PyTorch, whose allocator caches it."""

from __future__ import annotations

import torch


def held_bytes() -> int:
    """Bytes of pinned memory that PyTorch has from CUDA."""
    torch.cuda.init()  # without it, PyTorch reports no statistics
    statistics = torch.cuda.host_memory_stats()
    names = ("reserved_bytes.current", "allocated_bytes.current")  # the second in older releases
    return int(next(statistics[name] for name in names if name in statistics))


def pin(size: int) -> torch.Tensor:
    """A pinned tensor, uint8 [size]. PyTorch touches no page of it."""
    return torch.empty(size, dtype=torch.uint8, pin_memory=True)


def release() -> None:
    """Return pinned memory that no tensor uses to the system."""
    torch._C._host_emptyCache()
