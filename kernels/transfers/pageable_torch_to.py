"""A tensor in pageable memory, moved with `.to("cuda")`."""

from __future__ import annotations

from .tensor import binding

bind = binding(lambda tensor: tensor.to("cuda"))
