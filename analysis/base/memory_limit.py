"""Host memory that this process may still allocate: the system's, or less in a container.

The same as `kernels/common/memory_limit.h`, for code that is not compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

UNLIMITED: Final = 2**63 - 1
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class _Version:
    """A version of control groups: the type of its mounts, and the files of a group. `cache` is the
    key in memory.stat of the file pages that the kernel drops before a group reaches its limit."""

    mount_type: str
    limit: str
    use: str
    cache: str


_V1: Final = _Version(
    "cgroup", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
)
_V2: Final = _Version("cgroup2", "memory.max", "memory.current", "inactive_file")


def allocatable_bytes(root: Path = Path("/")) -> int:
    """Bytes that this process may still allocate: the least of the memory that the system has
    available and of what each of the process's control groups leaves. Huge if neither is known.

    Page cache that the kernel can drop counts as free. No content of the files makes it raise.
    `root` is the root of the file system, for tests.
    """
    available = _number(root / "proc/meminfo", "MemAvailable:", UNLIMITED)
    return min(min(available, UNLIMITED // 1024) * 1024, *_left_in_groups(root), UNLIMITED)


def _left_in_groups(root: Path) -> Iterator[int]:
    """Bytes that each control group leaves: those of this process, and all their ancestors."""
    mounts = list(_mounts(root))
    for line in _lines(root / "proc/self/cgroup"):
        # hierarchy:controllers:path, where the path may have colons, too.
        _, _, named = line.partition(":")
        controllers, colon, path = named.partition(":")
        if colon and (not controllers or "memory" in controllers.split(",")):
            version = _V1 if controllers else _V2
            for mount_type, top, point in mounts:
                if mount_type == version.mount_type and PurePosixPath(path).is_relative_to(top):
                    below = PurePosixPath(path).relative_to(top)
                    for group in (below, *below.parents):
                        yield _left(point / group, version)


def _mounts(root: Path) -> Iterator[tuple[str, str, Path]]:
    """Type, root and place of each mount of control groups that limit memory."""
    for line in _lines(root / "proc/self/mountinfo"):
        about, _, options = line.partition(" - ")
        match about.split(), options.split():
            case [_, _, _, top, point, *_], [mount_type, _, settings] if (
                mount_type == _V2.mount_type or "memory" in settings.split(",")
            ):
                yield mount_type, _unescaped(top), root / _unescaped(point).lstrip("/")


def _left(group: Path, version: _Version) -> int:
    """Bytes that the limit of one control group leaves to its processes."""
    limit = _number(group / version.limit, "", UNLIMITED)
    use = _number(group / version.use, "", 0)
    cache = _number(group / "memory.stat", version.cache, 0)
    return max(0, limit - max(0, use - cache))


def _number(path: Path, key: str, missing: int) -> int:
    """The first number of a file, or the one after the word `key`; `missing` if there is none."""
    words = " ".join(_lines(path)).split()
    try:
        number = int(words[words.index(key) + 1 if key else 0])
    except (ValueError, IndexError):
        return missing
    return number if 0 <= number <= UNLIMITED else missing


def _unescaped(field: str) -> str:
    r"""A field of mountinfo, which has \040 for a blank and \134 for a backslash."""
    return _ESCAPED.sub(lambda code: chr(int(code[1], 8)), field)


def _lines(path: Path) -> list[str]:
    """The lines of a file; none if it cannot be read."""
    try:
        return path.read_text("utf-8", "surrogateescape").split("\n")
    except (OSError, ValueError):
        return []
