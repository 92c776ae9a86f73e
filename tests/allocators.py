"""What tests of the allocators share: built variants over a source that only counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from analysis.modules import load_module, load_python
from analysis.study import discover
from analysis.toolchain.compile import compile_bindings, compile_module
from analysis.toolchain.compilers import find_toolchain

STUDY = discover()["allocator"]
workload: Any = load_python(STUDY, "workload")
patterns: Any = load_python(STUDY, "patterns")
ALLOCATORS = [
    *("p0_driver", "p1_exact_cache", "p2_size_buckets", "p3_block_pool"),
    *("p4_tlsf", "p4_exact_front", "p4_final"),
]
KIB, MIB, GIB = 2**10, 2**20, 2**30
GPU_BYTES = 79 * GIB

Allocators = Callable[[str], Any]
"""Loads the module of a variant by its name."""


def builds_in(folder: Path) -> Allocators:
    """Modules built in `folder`, each when it is first asked for."""
    bindings = folder / STUDY.name / "bindings.o"

    def load(name: str) -> Any:
        variant = STUDY.variant(name)
        out = folder / STUDY.name / f"{name}.so"
        if not bindings.exists():
            bindings.parent.mkdir()
            compile_bindings(STUDY, find_toolchain(), bindings)
        if not out.exists():
            compile_module(STUDY, variant, find_toolchain(), "sm_90", bindings, out)
        return load_module(folder, STUDY, variant)

    return load


class Host:
    """An allocator of a variant, over devices that have `capacity` bytes."""

    def __init__(self, module: Any, capacity: int = GPU_BYTES) -> None:
        self.module = module
        self.source = module.HostSource(capacity)
        self.own = module.Allocator(self.source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    @property
    def calls(self) -> tuple[int, int]:
        """Allocations and frees the driver was asked for."""
        counts = self.source.counts()
        return counts["allocations"], counts["frees"]
