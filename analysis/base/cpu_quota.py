"""CPU time that the control groups of this process allow, as a number of cores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from analysis.base.control_groups import ROOT, V1, groups, numbers_of


def cpu_quota(root: Path = ROOT) -> float | None:
    """The least quota of the control groups of this process, in cores; None if there is none.

    No content of the files makes it raise. `root` is the root of the file system, for tests.
    """
    return min(_quotas(root), default=None)


def _quotas(root: Path) -> Iterator[float]:
    for version, group in groups("cpu", root):
        if version == V1:
            words = [*_first(group / "cpu.cfs_quota_us"), *_first(group / "cpu.cfs_period_us")]
        else:
            words = numbers_of(group / "cpu.max")
        match words:
            case [int(quota), int(period), *_] if quota > 0 and period > 0:
                yield quota / period


def _first(path: Path) -> list[int | None]:
    return numbers_of(path)[:1]


def allowed_cores(root: Path = ROOT) -> int:
    """Number of CPUs that this process may keep busy: those of its affinity, or fewer by the quota;
    at least one."""
    cpus = len(os.sched_getaffinity(0))
    quota = cpu_quota(root)
    return cpus if quota is None else max(1, min(cpus, int(quota)))


def throttled_periods(root: Path = ROOT) -> int | None:
    """Number of periods in which a quota stopped the control groups of this process, since they
    were made; None if they do not say."""
    counts = [
        count
        for _, group in groups("cpu", root)
        for count in numbers_of(group / "cpu.stat", "nr_throttled")[:1]
        if count is not None and count >= 0
    ]
    return sum(counts) if counts else None
