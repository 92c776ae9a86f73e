"""Hotpath's caching allocator under PyTorch, instead of PyTorch's. In the package that
`python -m allocator install` writes, this file is __init__.py:

    import hotpath_allocator
    hotpath_allocator.install()  # before anything allocates memory of a GPU

Streams, CUDA graphs, limits per process and torch.OutOfMemoryError work. PyTorch lets no plugged-in
allocator have these: memory_stats and memory_summary, snapshots and recorded histories, settings in
PYTORCH_ALLOC_CONF, tensors shared with other processes, and the graph trees of torch.compile.
"""

from __future__ import annotations

import importlib
from typing import Any

_installed: list[Any] = []
"""Keeps the allocator alive, which frees tensors until the process ends."""


def install() -> None:
    """Plug the allocator into this process. RuntimeError if PyTorch has allocated already."""
    module = importlib.import_module(".variant", __name__)
    from torch.cuda import memory

    pluggable = memory.CUDAPluggableAllocator(module.__file__, "plug_allocate", "plug_free")
    for setter, address in module.HOOKS.items():
        getattr(pluggable.allocator(), setter)(address)
    memory.change_current_allocator(pluggable)
    _installed.append(pluggable)


def statistics(device: int = 0) -> dict[str, int]:
    """Bytes `reserved`, `peak_reserved` and `peak_active`, and `driver_calls` of a device."""
    found: dict[str, int] = importlib.import_module(".variant", __name__).statistics(device)
    return found
