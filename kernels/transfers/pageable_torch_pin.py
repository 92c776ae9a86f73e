"""A tensor in pageable memory, pinned each time and then moved without waiting."""

from __future__ import annotations

from .tensor import binding

bind = binding(lambda tensor: tensor.pin_memory().to("cuda", non_blocking=True))
