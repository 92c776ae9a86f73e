"""The workloads of pinning: neighbours, timed chunks, and what the check finds."""

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
    CONSTANTS,
    HUGE_PAGE,
    NEIGHBOURS,
    PINNING,
    TIMED_NEIGHBOUR,
    TIMED_WORKLOAD,
    WORKLOAD,
    case,
    module,
    wait_for_calls,
)

TIMED = "timed_chunks"
ONLY_TIMED = set(list(PINNING.metrics)[list(PINNING.metrics).index("p99_slowdown") + 1 :])
"""Metrics of timed_chunks only."""
SIZE = 3 * HUGE_PAGE + 12_345
SCHEDSTAT = Path("/proc/thread-self/schedstat")


@pytest.fixture(autouse=True)
def _on_fake_device(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)


@pytest.fixture
def workloads() -> Iterator[dict[str, Any]]:
    """The workloads, whose neighbours are processes."""
    WORKLOAD.Workload.before_cuda()
    TIMED_WORKLOAD.Workload.before_cuda()
    rng = np.random.default_rng(0)
    yield {
        name: of.Workload(CONSTANTS, rng)
        for name, of in (("chunks", WORKLOAD), (TIMED, TIMED_WORKLOAD))
    }
    TIMED_WORKLOAD.Workload._timed.close()  # it has copies of the other's pipe
    WORKLOAD.Workload._process.close()


@pytest.fixture
def _overlapping_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the fake runtime and the time alone wait for calls: an overloaded machine may run no
    neighbour for longer than either takes."""
    calls = tmp_path / "calls"
    monkeypatch.setenv("FAKE_CUDA_CALLS", str(calls))
    for code, kept in ((NEIGHBOURS, 1), (TIMED_WORKLOAD, 0)):
        sleep = lambda s, kept=kept: wait_for_calls(calls, kept * s) if s else None  # noqa: E731
        monkeypatch.setattr(code, "time", SimpleNamespace(sleep=sleep))


def bound(name: str, of: Case, workload: Any = None, built: Any = None) -> Operation:
    workload = workload or WORKLOAD.Workload(CONSTANTS, np.random.default_rng(0))
    inputs = workload.prepare(of)
    operation: Operation = inputs.bind(PINNING.variant(name), built or module(name))
    return operation


@pytest.mark.parametrize("name", ["host_alloc", "one_registration", *CHUNKED])
def test_pinned_memory_passes_and_yields_its_times(name: str) -> None:
    workloads = TIMED_WORKLOAD if name == TIMED else WORKLOAD
    operation = bound(name, case(5), workloads.Workload(CONSTANTS, np.random.default_rng(0)))
    for _ in range(2):
        operation.launch(0)  # which unpins the memory of the previous one
    assert outcome(operation) is None
    samples = operation.own_samples(0, 1)
    wanted = {"host_time", "unpin_time", "copy_time", "border_copy_status"}
    assert wanted <= set(samples) <= set(PINNING.metrics)
    assert (samples["border_copy_status"] != [0.0]) == (name in CHUNKED)


class Broken:
    """Pinned memory whose copies go wrong."""

    def __init__(self, pinned: Any, fault: str) -> None:
        self._pinned, self._fault = pinned, fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pinned, name)

    def copy(self, device: int, offset: int, size: int, to_device: bool, stream: int) -> None:
        if self._fault == "loses borders":
            size = min(size, 2**21 - offset % 2**21)
        if self._fault != "never returns" or to_device:
            self._pinned.copy(device, offset, size, to_device, stream)
        if self._fault == "writes behind" and to_device and offset:
            self._pinned.copy(device + size, 0, 1, to_device, stream)

    def copy_lines(self, *arguments: int) -> None:
        if self._fault != "loses lines":
            self._pinned.copy_lines(*arguments)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("loses borders", "to the device: byte"),
        ("writes behind", "after the output, was overwritten"),
        ("never returns", "from the device: expected another value"),
        ("loses lines", "a line of each 64 KiB"),
    ],
)
def test_a_wrong_copy_is_found(fault: str, message: str) -> None:
    pinned = SimpleNamespace(Pinned=lambda *of: Broken(module("chunks").Pinned(*of), fault))
    assert message in (outcome(bound("chunks", case(5), built=pinned)) or "")


def test_an_unknown_neighbour_is_an_error_and_too_little_memory_a_skip(
    workloads: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, beside, calls, message in (
        ("chunks", "friend", "malloc", "nobody, process or thread"),
        (TIMED, "thread", "malloc", "beside: expected nobody or process, got 'thread'"),
        (TIMED, "process", "copy", "calls: expected malloc, got 'copy'"),
    ):
        with pytest.raises(FieldError, match=message):
            bound(name, case(5, beside=beside, calls=calls), workloads[name])
    monkeypatch.setattr(WORKLOAD, "largest_pool", lambda: 2**20)
    with pytest.raises(Skip, match="this host allows 1048576 B"):
        bound("chunks", case(5))


@pytest.mark.usefixtures("_overlapping_calls")
@pytest.mark.parametrize(
    ("name", "beside"), [("chunks", "process"), ("chunks", "thread"), (TIMED, "process")]
)
def test_a_neighbour_is_timed_before_and_meanwhile(
    workloads: dict[str, Any], name: str, beside: str
) -> None:
    operation = bound(name, case(64, beside=beside, calls="malloc"), workloads[name])
    assert outcome(operation) is None
    samples = {one: values[0] for one, values in operation.own_samples(0, 1).items()}
    if name == TIMED:  # slow calls are rare, and no system has to count waits or run a neighbour
        rare = {one for one in PINNING.metrics if "_slow_" in one or one.endswith("_queued")}
        assert set(PINNING.metrics) - rare - {"touch_worst"} <= set(samples) <= set(PINNING.metrics)
        for kind in ("call", "unpin"):
            shares = [samples[f"{kind}_worst_{part}"] for part in ("in_one", "in_chunks")]
            assert 0 <= shares[0] <= shares[1] <= 1
    else:
        assert set(samples) == set(PINNING.metrics) - ONLY_TIMED
    for kind in ("alone", "call", "unpin"):
        median, p99, worst = (samples[f"{kind}_{one}"] for one in ("median", "p99", "worst"))
        assert 0 < median <= p99 <= worst
    assert samples["p99_slowdown"] == samples["call_p99"] / samples["alone_p99"]


def test_errors_and_the_end_of_the_process_are_reported(workloads: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match="neighbour: calls: expected copy, launch"):
        of = case(5, beside="process", calls="sing")
        bound("chunks", of, workloads["chunks"]).launch(0)
    with pytest.raises(RuntimeError, match=r"neighbour: .*PyInit_timed"):
        TIMED_WORKLOAD.Workload._timed.start(module("chunks"))
    processes = WORKLOAD.Workload._process, TIMED_WORKLOAD.Workload._timed
    for (name, workload), process in zip(workloads.items(), processes, strict=True):
        os.kill(process._process.pid, signal.SIGKILL)
        process._process.join()
        with pytest.raises(RuntimeError, match="neighbour: its process ended"):
            bound(name, case(5, beside="process", calls="malloc"), workload).launch(0)


# Chunks that are timed, and the state of their thread.


def timed() -> Any:
    return TIMED_NEIGHBOUR.timed_module(module(TIMED))


def test_each_chunk_of_the_last_pinning_is_timed() -> None:
    for size, count in ((HUGE_PAGE, 1), (SIZE, 4)):
        pinned = module(TIMED).Pinned(size, HUGE_PAGE, 2)
        begin, end = pinned.pinned_ns
        registered = timed().registrations()
        assert not len(timed().unregistrations())
        assert begin + pinned.touch_ns <= registered[0, 0] and registered[-1, 1] <= end
        begin, end = pinned.unpin()
        unregistered = timed().unregistrations()
        assert begin <= unregistered[0, 0] and unregistered[-1, 1] <= end
        for times in (registered, unregistered):
            assert times.shape == (count, 4) and times.dtype == np.int64
            assert (times[:, 1] >= times[:, 0]).all() and (times[1:, 0] >= times[:-1, 1]).all()
            assert (times[:, 2] >= 0).all()
            # This system counts waits for a core if the file is there.
            assert ((times[:, 3] >= 0) == SCHEDSTAT.exists()).all()
