"""Built variants of allocators over a source of memory that only counts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from analysis.toolchain.modules import load_python
from tests.compiled import module
from tests.repository import STUDIES

STUDY = STUDIES["phases"]
workload: Any = load_python(STUDY, "workload")
LIB = STUDY.folder.parent / "lib"
ALLOCATORS = [
    *("p0_driver", "p1_exact_cache", "p2_size_buckets", "p3_block_pool"),
    *("p4_tlsf", "p4_exact_front", "p4_final"),
]
KIB, MIB, GIB = 2**10, 2**20, 2**30
GPU_BYTES = 79 * GIB


def built(name: str) -> Any:
    """The module of a variant, optimised as much as replays of long tapes need."""
    return module(STUDY, STUDY.variant(name), optimisation="-O1")


def with_fault_in_allocator(tmp_path: Path, name: str, right: str, wrong: str) -> Path:
    """The folder of the steps in a copy of the allocator in which the file `name` is wrong, in one
    place."""
    copy = tmp_path / LIB.parent.name
    shutil.copytree(LIB.parent, copy, ignore=shutil.ignore_patterns("traces", "__pycache__"))
    (file,) = [path for folder in ("lib", "phases") if (path := copy / folder / name).exists()]
    text = file.read_text()
    assert text.count(right) == 1, f"{name}: {right}"
    file.write_text(text.replace(right, wrong))
    return copy / "phases"


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
