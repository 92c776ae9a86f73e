"""CPU time and host memory that this process may use: the system's, or less in a container.

`allocatable_bytes` is the same as `kernels/common/memory_limit.h`, for code that is not compiled.
No content of the files makes these functions raise; `root` is the root of the file system, for
tests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

V1: Final = "cgroup"
V2: Final = "cgroup2"
ROOT: Final = Path("/")
UNLIMITED: Final = 2**63 - 1
_MEMORY_FILES: Final = {
    V1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    V2: ("memory.max", "memory.current", "inactive_file"),
}
"""Of each version: the files with the limit and the use of a group, and the key in memory.stat of
the file pages that the kernel drops before a group reaches its limit."""


def parse_cpu_list(text: str) -> list[int]:
    """The CPUs of a list like `0-3,8`, in its order; none of an empty one."""
    spans = [span.split("-") for span in text.strip().split(",") if span]
    return [cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)]


def cpu_quota(root: Path = ROOT) -> float | None:
    """The least quota of the control groups of this process, in cores; None if there is none."""
    quotas = []
    for _, group in _groups("cpu", root):
        files = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
        match [number for file in files for number in _numbers(group / file)]:
            case [int(quota), int(period), *_] if quota > 0 and period > 0:
                quotas.append(quota / period)
    return min(quotas, default=None)


def allowed_cores(root: Path = ROOT) -> int:
    """Number of CPUs that this process may keep busy: those of its affinity, or fewer by the quota;
    at least one."""
    cpus = len(os.sched_getaffinity(0))
    quota = cpu_quota(root)
    return cpus if quota is None else max(1, min(cpus, int(quota)))


def throttled_periods(root: Path = ROOT) -> int | None:
    """Number of periods in which a quota stopped the control groups of this process, since they
    were made; None if they do not say."""
    stats = [group / "cpu.stat" for _, group in _groups("cpu", root)]
    counts = [count for file in stats if (count := _number(file, "nr_throttled", -1)) >= 0]
    return sum(counts) if counts else None


def allocatable_bytes(root: Path = ROOT) -> int:
    """Bytes that this process may still allocate: the least of the memory that the system has
    available and of what each of the process's control groups leaves. Huge if neither is known.

    Page cache that the kernel can drop counts as free.
    """
    available = _number(root / "proc/meminfo", "MemAvailable:", UNLIMITED)
    left = [min(available, UNLIMITED // 1024) * 1024, UNLIMITED]
    for version, group in _groups("memory", root):
        limit_file, use_file, cache_key = _MEMORY_FILES[version]
        limit = _number(group / limit_file, "", UNLIMITED)
        use = _number(group / use_file, "", 0)
        cache = _number(group / "memory.stat", cache_key, 0)
        left.append(max(0, limit - max(0, use - cache)))
    return min(left)


def _groups(controller: str, root: Path) -> Iterator[tuple[str, Path]]:
    """The version and the folder of each group of this process that has `controller`, and of all
    their ancestors that are mounted."""
    mounts = list(_mounts(controller, root))
    for line in _lines(root / "proc/self/cgroup"):
        # hierarchy:controllers:path, where the path may have colons, too.
        _, _, named = line.partition(":")
        controllers, colon, path = named.partition(":")
        if colon and (not controllers or controller in controllers.split(",")):
            version = V1 if controllers else V2
            for mount_type, top, point in mounts:
                if mount_type == version and PurePosixPath(path).is_relative_to(top):
                    below = PurePosixPath(path).relative_to(top)
                    for group in (below, *below.parents):
                        yield version, point / group


def _mounts(controller: str, root: Path) -> Iterator[tuple[str, str, Path]]:
    """Type, root and place of each mount of control groups with `controller`."""
    for line in _lines(root / "proc/self/mountinfo"):
        about, _, options = line.partition(" - ")
        match about.split(), options.split():
            case [_, _, _, top, point, *_], [mount_type, *settings] if (
                mount_type == V2 or controller in ",".join(settings).split(",")
            ):
                yield mount_type, _unescaped(top), root / _unescaped(point).lstrip("/")


def _unescaped(field: str) -> str:
    r"""A field of mountinfo, which has \040 for a blank and \134 for a backslash."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), field)


def _lines(path: Path) -> list[str]:
    """The lines of a file; none if it cannot be read."""
    try:
        return path.read_text("utf-8", "surrogateescape").split("\n")
    except (OSError, ValueError):
        return []


def _numbers(path: Path, key: str = "") -> list[int | None]:
    """The words of a file, or those after the word `key`, as numbers; None for another word."""
    words = " ".join(_lines(path)).split()
    if key:
        words = words[words.index(key) + 1 :] if key in words else []
    return [int(word) if re.fullmatch("-?[0-9]{1,30}", word) else None for word in words]


def _number(path: Path, key: str, missing: int) -> int:
    """The first number of a file, or the one after the word `key`; `missing` if there is none."""
    number, *_ = *_numbers(path, key)[:1], None
    return number if number is not None and 0 <= number <= UNLIMITED else missing
