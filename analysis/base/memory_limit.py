"""Host memory that this process may still allocate: the system's, or less in a container.

The same as `kernels/common/memory_limit.h`, for code that is not compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from analysis.base.control_groups import ROOT, V1, V2, groups, numbers_of

UNLIMITED: Final = 2**63 - 1

_FILES: Final = {
    V1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    V2: ("memory.max", "memory.current", "inactive_file"),
}
"""Of each version: the files with the limit and the use of a group, and the key in memory.stat of
the file pages that the kernel drops before a group reaches its limit."""


def allocatable_bytes(root: Path = ROOT) -> int:
    """Bytes that this process may still allocate: the least of the memory that the system has
    available and of what each of the process's control groups leaves. Huge if neither is known.

    Page cache that the kernel can drop counts as free. No content of the files makes it raise.
    `root` is the root of the file system, for tests.
    """
    available = _number(root / "proc/meminfo", "MemAvailable:", UNLIMITED)
    return min(min(available, UNLIMITED // 1024) * 1024, *_left_in_groups(root), UNLIMITED)


def _left_in_groups(root: Path) -> Iterator[int]:
    """Bytes that the limit of each control group leaves to its processes."""
    for version, group in groups("memory", root):
        limit_file, use_file, cache_key = _FILES[version]
        limit = _number(group / limit_file, "", UNLIMITED)
        use = _number(group / use_file, "", 0)
        cache = _number(group / "memory.stat", cache_key, 0)
        yield max(0, limit - max(0, use - cache))


def _number(path: Path, key: str, missing: int) -> int:
    """The first number of a file, or the one after the word `key`; `missing` if there is none."""
    number, *_ = *numbers_of(path, key)[:1], None
    return number if number is not None and 0 <= number <= UNLIMITED else missing
