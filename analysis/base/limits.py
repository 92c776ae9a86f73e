"""CPU time and host memory that this process may use: the system's, or less in a container.

`allocatable_bytes` is the same as `kernels/common/memory_limit.h`, for code that is not compiled.
No content of the files makes these functions raise; `root` is the root of the file system, for
tests.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path("/")
_MEMORY_FILES: Final = {
    "cgroup": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    "cgroup2": ("memory.max", "memory.current", "inactive_file"),
}
"""Of each version of control groups: the files with the limit and the use of a group, and the key
in memory.stat of the file pages that the kernel drops before a group reaches its limit."""


def parse_cpu_list(text: str) -> list[int]:
    """The CPUs of a list like `0-3,8`, in its order; none of an empty one."""
    spans = [span.split("-") for span in text.strip().split(",") if span]
    return [cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)]


def cpu_quota(root: Path = ROOT) -> float | None:
    """The least quota of the control groups of this process, in cores; None if there is none."""
    quotas = []
    for _, group in _groups("cpu", root):
        files = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
        words = " ".join(_text(group / file).strip() for file in files).strip()
        if found := re.fullmatch("([1-9][0-9]{,30}) ([1-9][0-9]*)", words):
            quotas.append(int(found[1]) / int(found[2]))
    return min(quotas, default=None)


def allowed_cores(root: Path = ROOT) -> int:
    """Number of CPUs that this process may keep busy: those of its affinity, or fewer by the quota;
    at least one."""
    cpus = len(os.sched_getaffinity(0))
    return max(1, min(cpus, int(cpu_quota(root) or cpus)))


def throttled_periods(root: Path = ROOT) -> int | None:
    """Number of periods in which a quota stopped the control groups of this process, since they
    were made; None if they do not say."""
    counts = [_number(group / "cpu.stat", "nr_throttled") for _, group in _groups("cpu", root)]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def allocatable_bytes(root: Path = ROOT) -> int:
    """Bytes that this process may still allocate: the least of the memory that the system has
    available and of what each of the process's control groups leaves. Huge if neither is known.

    Page cache that the kernel can drop counts as free.
    """
    available = _number(root / "proc/meminfo", "MemAvailable:")
    left = [2**63 - 1 if available is None else available * 1024]
    for version, group in _groups("memory", root):
        limit_file, use_file, cache_key = _MEMORY_FILES[version]
        if (limit := _number(group / limit_file)) is not None:
            use = _number(group / use_file) or 0
            cache = _number(group / "memory.stat", cache_key) or 0
            left.append(max(0, limit - max(0, use - cache)))
    return min(left)


def _groups(controller: str, root: Path) -> Iterator[tuple[str, Path]]:
    """The version and the folder of each group of this process that has `controller`, and of all
    their ancestors that are mounted."""
    # hierarchy:controllers:path, where the path may have colons, too.
    groups = re.findall("^[^:\n]*:([^:\n]*):(.*)$", _text(root / "proc/self/cgroup"), re.MULTILINE)
    # id parent device top point options... - type source settings
    mount = r"^\S+ \S+ \S+ (\S+) (\S+) .*- (cgroup2?) \S+ (\S+)$"
    for *places, version, settings in re.findall(mount, _text(root / "proc/self/mountinfo"), re.M):
        names = settings.split(",")
        if version == "cgroup" and controller not in names:
            continue
        code = re.compile(r"\\([0-7]{3})")
        top, point = (code.sub(lambda found: chr(int(found[1], 8)), place) for place in places)
        for controllers, path in groups:
            is_in = (controller if version == "cgroup" else "") in controllers.split(",")
            if is_in and PurePosixPath(path).is_relative_to(top):
                below = PurePosixPath(path).relative_to(top)
                for inner in (below, *below.parents):
                    yield version, root / point.lstrip("/") / inner


def _text(path: Path) -> str:
    """The text of a file; empty if it cannot be read."""
    try:
        return path.read_text("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return ""


def _number(path: Path, key: str = "") -> int | None:
    """The first word of a file, or the one after the word `key`, if it is a number."""
    found = re.search(rf"(?:^|\s){re.escape(key)}\s*([0-9]{{1,30}})(?!\S)", _text(path))
    return int(found[1]) if found else None
