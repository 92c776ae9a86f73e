"""Built variants of allocators over a source of memory that only counts."""

from __future__ import annotations

from typing import Any

from analysis.toolchain.modules import load_python
from tests.compiled import module
from tests.repository import STUDIES

STUDY = STUDIES["allocator"]
workload: Any = load_python(STUDY, "workload")
patterns: Any = load_python(STUDY, "patterns")
ALLOCATORS = [
    *("p0_driver", "p1_exact_cache", "p2_size_buckets", "p3_block_pool"),
    *("p4_tlsf", "p4_exact_front", "p4_final"),
]
KIB, MIB, GIB = 2**10, 2**20, 2**30
GPU_BYTES = 79 * GIB


def built(name: str) -> Any:
    """The module of a variant, optimised as much as replays of long tapes need."""
    return module(STUDY, STUDY.variant(name), optimisation="-O1")


class Host:
    """An allocator of a variant, over devices that have `capacity` bytes."""

    def __init__(self, module: Any, capacity: int = GPU_BYTES) -> None:
        self.module = module
        self.source = module.HostSource(capacity)
        self.allocator = module.Allocator(self.source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.allocator, name)

    @property
    def calls(self) -> tuple[int, int]:
        """Allocations and frees the driver was asked for."""
        counts = self.source.counts()
        return counts["allocations"], counts["frees"]
