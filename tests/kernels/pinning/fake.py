"""Modules and workloads of this study, on a fake CUDA runtime."""

from __future__ import annotations

import ctypes
import time
from functools import cache
from pathlib import Path
from typing import Any

from analysis.study import Case, CaseValue
from analysis.toolchain.modules import load_python
from tests.kernels.stubbed import stubbed
from tests.repository import STUDIES
from tests.waiting import DEADLINE_S

PINNING = STUDIES["pinning"]
WORKLOAD = load_python(PINNING, "workload")
NEIGHBOURS = load_python(PINNING, "neighbours")
TIMED_WORKLOAD = load_python(PINNING, "timed_workload")
TIMED_NEIGHBOUR = load_python(PINNING, "timed_neighbour")
WAITS = load_python(PINNING, "waits")
CONSTANTS = {**PINNING.constants, "chunk_mib": 2}
HUGE_PAGE = 2**21
CHUNKED = ["chunks", "chunks_by_threads", "overlapped", "timed_chunks"]


@cache
def module(name: str) -> Any:
    """The module of a variant, linked with the fake runtime."""
    return stubbed(PINNING, name, Path(__file__).parent / "fake_cudart.cpp")


def wait_for_calls(calls: Path, seconds: float = 0) -> None:
    """Wait for this time, and until the neighbour has made a whole call, which the fake runtime
    notes in the file `calls` just before the end of each."""
    before, deadline = calls.stat().st_size, time.monotonic() + DEADLINE_S
    time.sleep(seconds)
    while calls.stat().st_size < before + 2:
        assert time.monotonic() < deadline, "the neighbour makes no calls"
        time.sleep(0.001)


def refuse_registration(name: str, number: int) -> None:
    """Let the fake runtime of this variant refuse this registration, counted from 0; -1: none."""
    ctypes.CDLL(module(name).__file__).refuse_registration(ctypes.c_long(number))


def pinned_ranges(name: str) -> int:
    count: int = ctypes.CDLL(module(name).__file__).pinned_ranges()
    return count


def case(mib: int, **values: CaseValue) -> Case:
    return Case({"mib": mib, "beside": "nobody", **values}, mib * 2**20, "default")
