"""A tensor in pageable memory, moved with non_blocking=True, which cannot avoid the wait."""

from __future__ import annotations

from .tensor import binding

bind = binding(lambda tensor: tensor.to("cuda", non_blocking=True))
