"""A tensor in pageable memory, moved with a promise not to wait that cannot be kept."""

from __future__ import annotations

from .tensor import binding

memory = "pageable"

bind = binding(lambda tensor: tensor.to("cuda", non_blocking=True))
