"""The CPUs that this process may use, in the order in which threads should be pinned to them, and a
thread pool for all of them. A CPU quota counts as fewer CPUs."""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from analysis.base.limits import allowed_cores, parse_cpu_list


def cores() -> list[int]:
    """The first hardware thread of every core, then the second of each, and so on."""
    allowed = sorted(os.sched_getaffinity(0))
    return sorted(allowed, key=lambda cpu: (_siblings(cpu).index(cpu), cpu))


def use_cpus(cpus: Collection[int]) -> None:
    """Keep this process and its threads to `cpus`, and to no more of them than its CPU quota keeps
    busy: with more threads than that, all of them would be stopped in every period."""
    os.sched_setaffinity(0, cpus)
    if (allowed := allowed_cores()) < len(cpus):
        os.sched_setaffinity(0, cores()[:allowed])


def threads() -> ThreadPoolExecutor:
    """The shared thread pool, with one thread for each CPU that this process may use. A thread of
    the pool must not wait for further work of the pool, which could deadlock."""
    return _threads(os.getpid(), len(os.sched_getaffinity(0)))


@cache
def _threads(process_id: int, count: int) -> ThreadPoolExecutor:
    """One pool for each process, because a forked process does not inherit threads."""
    return ThreadPoolExecutor(count, f"pool of {process_id}")


def _siblings(cpu: int) -> list[int]:
    """The hardware threads of the core of `cpu`, including `cpu`; only `cpu` if unknown."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    return parse_cpu_list(path.read_text()) if path.exists() else [cpu]
