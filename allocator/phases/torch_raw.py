"""PyTorch's allocator through the lowest-level calls available in Python."""

from __future__ import annotations

import torch

STREAM = 0


def allocate(size: int) -> int:
    """Address of `size` bytes for work on the default stream."""
    pointer: int = torch._C._cuda_cudaCachingAllocator_raw_alloc(size, STREAM)
    return pointer


free = torch._C._cuda_cudaCachingAllocator_raw_delete
