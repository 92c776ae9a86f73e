"""Profile of posting threads, with a provider of known times and with the real one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from analysis.toolchain.libfabric import Libfabric
from tests.compiled import program
from tests.kernels.rdma_write.sessions import STUDY, session

CALLS = ("post", "refused", "poll", "empty", "own")
KNOWN_TICKS = [4e6, 1e6, 3e6, 2e6, 6e6]
"""Ticks that the provider spends in each of CALLS."""
MIN_RUNS, MAX_RUNS = 5, 200
PARTS = {metric.name for metric in STUDY.metrics.values() if metric.part_of == "op_time"}


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_are_the_times_of_the_provider_and_of_the_code_between(
    libfabric: Libfabric, threads: int
) -> None:
    source = Path(__file__).with_name("profile.cpp")
    flags = ["-std=c++20", "-O2", *libfabric.compile_flags]
    timed = program("rdma-profile", [source], STUDY.folder, flags)
    # The minimum of many runs: other processes on this machine only lengthen a time.
    runs: list[list[float]] = []
    while len(runs) < MIN_RUNS or (len(runs) < MAX_RUNS and not has_known_times(runs)):
        output = subprocess.run([timed, str(threads)], check=True, capture_output=True, text=True)
        first, *named = output.stdout.splitlines()
        runs.append([float(ticks) for ticks in first.split()])
        per_write = {name: float(value) for name, value in map(str.split, named)}
        # Of 32e6 ticks in 1 s and 10 writes; rest_time is the remainder.
        for name, ticks in zip(CALLS, runs[-1], strict=False):
            assert per_write[f"{name}_time"] == pytest.approx(ticks / 320e6, abs=1e-7)
        rest = max(0.0, 32e6 - sum(runs[-1]))
        assert per_write["rest_time"] == pytest.approx(rest / 320e6, abs=1e-7)
        assert set(per_write) == PARTS
    assert has_known_times(runs)


def has_known_times(runs: list[list[float]]) -> bool:
    """Whether each part takes its known time, and the clock less than 5 %."""
    *parts, clock = (min(column) for column in zip(*runs, strict=True))
    return parts == pytest.approx(KNOWN_TICKS, rel=0.1) and 0 < clock < 0.05 * sum(parts)


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        *(("single_thread", provider) for provider in ("shm", "tcp")),
        ("pooled_contexts", "shm"),
        pytest.param("pooled_contexts", "tcp", marks=pytest.mark.long),
        pytest.param("selective_completion", "shm", marks=pytest.mark.long),
        pytest.param("selective_completion", "tcp", marks=pytest.mark.long),
    ],
)
def test_parts_add_up_to_the_time_of_a_write(
    peers: Any, modules: dict[str, Path], name: str, provider: str
) -> None:
    settings: dict[str, Any] = {"provider": provider, "pages": 5000, "profiles": True}
    with session(peers, modules[name], **settings) as transfer:
        for seed in (1, 2):
            seconds, wrong = transfer.fill(seed)
            parts = transfer.parts
            assert wrong == ""
            assert set(parts) == PARTS
            assert all(value >= 0 for value in parts.values())
            assert all(parts[f"{part}_time"] > 0 for part in ("post", "poll", "own", "rest"))
            # The parts exclude reading the clock.
            assert 0.3 * seconds < sum(parts.values()) < 1.001 * seconds


def test_server_times_calls_only_on_request(peers: Any, modules: dict[str, Path]) -> None:
    with session(peers, modules["pooled_contexts"]) as transfer:
        assert transfer.fill(1)[1] == ""
        assert transfer.parts == {}
