"""The workload of pinning: neighbours and their statistics, borders, and what the check finds."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.measure.cell import Operation, Skip
from analysis.study import Case
from tests.kernels.cuda import install, outcome
from tests.kernels.pinning.fake import (
    CHUNKED,
    NEIGHBOURS,
    PINNING,
    WORKLOAD,
    case,
    module,
    wait_for_calls,
)

TIMED = set(list(PINNING.metrics)[list(PINNING.metrics).index("p99_slowdown") + 1 :])
"""Metrics of timed_chunks only."""
CONSTANTS = {**PINNING.constants, "chunk_mib": 2}


@pytest.fixture(autouse=True)
def _on_fake_device(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)


def bound(name: str, of: Case, workload: Any = None) -> Operation:
    workload = workload or WORKLOAD.Workload(CONSTANTS, np.random.default_rng(0))
    operation: Operation = workload.prepare(of).bind(PINNING.variant(name), module(name))
    return operation


@pytest.mark.parametrize("name", ["host_alloc", "one_registration", *CHUNKED])
def test_pinned_memory_passes_and_yields_its_times(name: str) -> None:
    operation = bound(name, case(5))
    assert outcome(operation) is None
    samples = operation.own_samples(0, 1)
    wanted = {"host_time", "unpin_time", "copy_time", "border_copy_status"}
    assert wanted <= set(samples) <= set(PINNING.metrics)
    assert (samples["border_copy_status"] != [0.0]) == (name in CHUNKED)


def test_a_launch_unpins_the_previous_one() -> None:
    operation = bound("chunks", case(5))
    for _ in range(3):
        operation.launch(0)
    assert operation.check() is None


class Module:
    """A module with memory whose copies go wrong as `break_copy` says."""

    def __init__(self, real: Any, broken: Any) -> None:
        self._real = real
        self._broken = broken

    def Pinned(self, *request: int) -> Any:
        return self._broken(self._real.Pinned(*request))


class Broken:
    def __init__(self, pinned: Any) -> None:
        self._pinned = pinned

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pinned, name)


class LosesBorders(Broken):
    """Copies only what lies before the first border."""

    def copy(self, device: int, offset: int, size: int, *more: Any) -> None:
        self._pinned.copy(device, offset, min(size, 2**21 - offset % 2**21), *more)


class WritesBehind(Broken):
    """Copies a byte too many."""

    def copy(self, device: int, offset: int, size: int, to_device: bool, stream: int) -> None:
        self._pinned.copy(device, offset, size, to_device, stream)
        if to_device and offset:
            self._pinned.copy(device + size, 0, 1, to_device, stream)


class NeverReturns(Broken):
    """Copies to the device only."""

    def copy(self, device: int, offset: int, size: int, to_device: bool, stream: int) -> None:
        if to_device:
            self._pinned.copy(device, offset, size, to_device, stream)


class LosesLines(Broken):
    def copy_lines(self, device: int, width: int, pitch: int, stream: int) -> None:
        del device, width, pitch, stream


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (LosesBorders, "to the device: byte"),
        (WritesBehind, "after the output, was overwritten"),
        (NeverReturns, "from the device: expected another value"),
        (LosesLines, "a line of each 64 KiB"),
    ],
)
def test_a_wrong_copy_is_found(broken: Any, message: str) -> None:
    workload = WORKLOAD.Workload(CONSTANTS, np.random.default_rng(0))
    operation = workload.prepare(case(5)).bind(
        PINNING.variant("chunks"), Module(module("chunks"), broken)
    )
    assert message in (outcome(operation) or "")


def test_more_than_the_host_allows_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKLOAD, "largest_pool", lambda: 2**20)
    with pytest.raises(Skip, match="this host allows 1048576 B"):
        bound("chunks", case(5))


def test_an_unknown_neighbour_is_an_error() -> None:
    with pytest.raises(FieldError, match="nobody, process or thread"):
        bound("chunks", case(5, beside="friend"))


@pytest.fixture
def workload() -> Iterator[Any]:
    WORKLOAD.Workload.before_cuda()
    yield WORKLOAD.Workload(CONSTANTS, np.random.default_rng(0))
    WORKLOAD.Workload._process.close()


@pytest.fixture
def _overlapping_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the fake runtime and the time alone wait for calls: an overloaded machine may run no
    neighbour for longer than either takes."""
    calls = tmp_path / "calls"
    monkeypatch.setenv("FAKE_CUDA_CALLS", str(calls))

    def sleep(seconds: float) -> None:
        if seconds:
            wait_for_calls(calls, seconds)

    monkeypatch.setattr(NEIGHBOURS, "time", SimpleNamespace(sleep=sleep))


@pytest.mark.parametrize("beside", ["process", "thread"])
def test_a_neighbour_is_timed_before_and_meanwhile(
    beside: str, _overlapping_calls: None, workload: Any
) -> None:
    operation = bound("chunks", case(64, beside=beside, calls="copy"), workload)
    assert outcome(operation) is None
    samples = operation.own_samples(0, 1)
    assert set(samples) == set(PINNING.metrics) - TIMED
    for kind in ("alone", "call", "unpin"):
        median, p99, worst = (samples[f"{kind}_{name}"][0] for name in ("median", "p99", "worst"))
        assert 0 < median <= p99 <= worst
    assert samples["p99_slowdown"] == [samples["call_p99"][0] / samples["alone_p99"][0]]


def test_an_error_of_the_process_is_reported(workload: Any) -> None:
    with pytest.raises(RuntimeError, match="neighbour: calls: expected copy, launch"):
        bound("chunks", case(5, beside="process", calls="sing"), workload).launch(0)


def test_a_process_that_ends_is_reported(workload: Any) -> None:
    process = WORKLOAD.Workload._process
    os.kill(process._process.pid, signal.SIGKILL)
    process._process.join()
    with pytest.raises(RuntimeError, match="neighbour: its process ended"):
        bound("chunks", case(5, beside="process", calls="copy"), workload).launch(0)
