"""Made-up systems: their memory, control groups, and the bytes that a process may allocate."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

GIB: Final = 2**30
AVAILABLE: Final = 20 * GIB
"""Bytes that each system has available."""
HUGE: Final = 2**62
"""Less than what is left if nothing is known."""
Files = dict[str, Any]


@dataclass(frozen=True)
class System:
    """Bytes left, lines of /proc/self/cgroup and mountinfo, and files of control groups."""

    left: int
    groups: str
    mounts: str
    files: Files

    def write(self, root: Path) -> None:
        """Put the files under `root`."""
        other = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw"
        texts = {
            "proc/meminfo": f"MemTotal: 99 kB\nMemAvailable: {AVAILABLE // 1024} kB\n",
            "proc/self/cgroup": f"9:name=systemd:/\n{self.groups}\n",
            "proc/self/mountinfo": f"{other}\n{self.mounts}\n",
        }
        texts |= {f"sys/fs/cgroup/{name}": f"{value}\n" for name, value in self.files.items()}
        for name, text in texts.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, "utf-8", "surrogateescape")


def _mount(top: str = "/") -> str:
    return f"31 23 0:28 {top} /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw"


def _v1_mount(top: str = "/", controllers: str = "memory") -> str:
    place = f"/sys/fs/cgroup/{controllers}"
    return f"36 32 0:33 {top} {place} rw,relatime shared:9 - cgroup cgroup rw,{controllers}"


def _limit(group: str, limit: str | int, use: int = 0, cache: int = 0) -> Files:
    """Files of a group of either version, in bytes."""
    memory = f"{group}memory."
    names = ("limit_in_bytes", "usage_in_bytes") if "memory/" in group else ("max", "current")
    stat = f"anon 7\ninactive_file {cache}"
    if "memory/" in group:
        stat = f"inactive_file 1\ntotal_inactive_file {cache}"
    return {f"{memory}{names[0]}": limit, f"{memory}{names[1]}": use, f"{memory}stat": stat}


_POD: Final = "/kubepods.slice/kubepods-burstable.slice/kubepods-pod7.slice:cri-containerd:1f"
_POD_V1: Final = "/kubepods/burstable/pod7/1f"
_V2: Final = ("0::/job", _mount())
_NOISE: Final = "\udcff:\0::/\udcff\n:\n::\n4:memory\n0::job\n0::/" + "deep/" * 500 + "\n0::/job"

SYSTEMS: Final[Mapping[str, System]] = {
    "no limit": System(AVAILABLE, *_V2, _limit("job/", "max", GIB)),
    "page cache": System(7 * GIB, *_V2, _limit("job/", 8 * GIB, 3 * GIB, 2 * GIB)),
    "more in use than allowed": System(0, "0::/", _mount(), _limit("", GIB, 2 * GIB)),
    "an ancestor's limit": System(
        *(4 * GIB, "0::/a/b/c", _mount()),
        _limit("a/", 6 * GIB, 2 * GIB) | _limit("a/b/", "max") | _limit("a/b/c/", 9 * GIB),
    ),
    "another container's mount": System(
        AVAILABLE, "0::/docker/2e/job", _mount("/docker/1f"), _limit("", GIB) | _limit("job/", GIB)
    ),
    "a colon and a backslash in the path": System(
        2 * GIB, "0::/a\\x2d1/b:7/c", _mount(r"/a\134x2d1"), _limit("b:7/c/", 2 * GIB)
    ),
    "v1": System(
        *(GIB, "4:memory:/a/b", _v1_mount()),
        _limit("memory/a/", 4 * GIB, 5 * GIB, 2 * GIB)
        | _limit("memory/a/b/", 9 * GIB)
        | _limit("memory/", 9223372036854771712),
    ),
    "a container of Kubernetes, v1": System(
        3 * GIB,
        f"11:cpu,cpuacct:{_POD_V1}\n5:memory:{_POD_V1}\n0::/",
        f"{_v1_mount(_POD_V1)}\n{_v1_mount(_POD_V1, 'cpu,cpuacct')}",
        _limit("memory/", 4 * GIB, GIB),
    ),
    "a process moved out of its namespace": System(
        2 * GIB, "0::/../other", _mount(), _limit("", 2 * GIB)
    ),
    "no readable text": System(
        *(2 * GIB, _NOISE),
        f"\udcff\0 - \udcff\n-\n1 2 3 4 5 - cgroup2\n{'x ' * 9999}\n{_mount()}",
        _limit("", "-5", 7) | _limit("job/", 2 * GIB) | {"job/memory.stat": "inactive_file \udcff"},
    ),
}
"""By what is particular to each."""


def _quota(group: str, text: str, throttled: int | str = 0) -> Files:
    """Files of a group of either version; microseconds of the quota and of the period."""
    stat = {f"{group}cpu.stat": f"nr_periods 9\nnr_throttled {throttled}\nthrottled_time 7"}
    quota, _, period = text.partition(" ")
    if "cpuacct/" in group:
        return stat | {f"{group}cpu.cfs_quota_us": quota, f"{group}cpu.cfs_period_us": period}
    return stat | {f"{group}cpu.max": text}


_JOINED: Final = _v1_mount("/docker/1f", "cpu,cpuacct")
_PODS: Final = _quota(f"{_POD[1:]}/", "400000 100000", 1) | _quota("kubepods.slice/", "100 100", 4)
_DOCKER: Final = _quota("cpu,cpuacct/", "400000 100000", 2)
_VAGUE: Final = _quota("job/", "0 0", "x") | _quota("", "many", "-1")
QUOTAS: Final[Mapping[str, tuple[float | None, int | None, System]]] = {
    "no quota": (None, 0, System(0, *_V2, _quota("job/", "max 100000"))),
    "less than a core": (0.5, 0, System(0, "0::/", _mount(), _quota("", "50000 100000"))),
    "an ancestor's quota": (1.0, 5, System(0, f"0::{_POD}", _mount(), _PODS)),
    "Docker, v1": (4.0, 2, System(0, "11:cpu,cpuacct:/docker/1f", _JOINED, _DOCKER)),
    "v1, another controller": (None, None, System(0, "11:cpuset:/docker/1f", _JOINED, _DOCKER)),
    "files without a meaning": (None, None, System(0, *_V2, _VAGUE)),
}
"""Quota in cores, throttled periods and the system, by what is particular to it."""
