"""The cores that this process may use, in the order in which threads should be pinned to them."""

from __future__ import annotations

import os
from pathlib import Path

from analysis.base.cpus import parse_cpu_list

CPUS = Path("/sys/devices/system/cpu")


def cores() -> list[int]:
    """The first hardware thread of every core, then the second of each, and so on."""
    allowed = sorted(os.sched_getaffinity(0))
    return sorted(allowed, key=lambda cpu: (_siblings(cpu).index(cpu), cpu))


def _siblings(cpu: int) -> list[int]:
    """The hardware threads of the core of `cpu`, including `cpu`; only `cpu` if unknown."""
    path = CPUS / f"cpu{cpu}" / "topology" / "thread_siblings_list"
    try:
        return parse_cpu_list(path.read_text())
    except OSError:
        return [cpu]
