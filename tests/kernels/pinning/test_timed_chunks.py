"""Timed chunks beside a timed neighbour, on a fake CUDA runtime."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.base.processes import end_with_parent
from analysis.measure.cell import Operation
from analysis.study import Case
from tests.kernels.cuda import install, outcome
from tests.kernels.pinning.fake import (
    HUGE_PAGE,
    NEIGHBOURS,
    PINNING,
    TIMED_NEIGHBOUR,
    TIMED_WORKLOAD,
    case,
    module,
    refuse_registration,
    wait_for_calls,
)

NAME = "timed_chunks"
SIZE = 3 * HUGE_PAGE + 12_345
CONSTANTS = {**PINNING.constants, "chunk_mib": 2}
SCHEDSTAT = Path("/proc/thread-self/schedstat")
SLOW_ONLY = {name for name in PINNING.metrics if name.endswith(("_slow_in_chunks", "_slow_queued"))}
"""Metrics that only a run with a slow call has."""


@pytest.fixture(autouse=True)
def _on_fake_device(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)


@pytest.fixture
def workload() -> Iterator[Any]:
    TIMED_WORKLOAD.Workload.before_cuda()
    yield TIMED_WORKLOAD.Workload(CONSTANTS, np.random.default_rng(0))
    TIMED_WORKLOAD.Workload._timed.close()


def bound(workload: Any, of: Case) -> Operation:
    operation: Operation = workload.prepare(of).bind(PINNING.variant(NAME), module(NAME))
    return operation


def timed() -> Any:
    return TIMED_NEIGHBOUR.timed_module(module(NAME))


def assert_in_order(times: np.ndarray) -> None:
    """Begin and end of each call, and no call begins before the previous one has ended."""
    assert times.shape[1] == 4 and times.dtype == np.int64
    assert (times[:, 1] >= times[:, 0]).all()
    assert (times[1:, 0] >= times[:-1, 1]).all()
    assert (times[:, 2] >= 0).all() and (times[:, 3] >= -1).all()


def test_each_chunk_is_timed() -> None:
    pinned = module(NAME).Pinned(SIZE, HUGE_PAGE, 2)
    begin, end = pinned.pinned_ns
    registrations = timed().registrations()
    assert len(registrations) == 4 and not len(timed().unregistrations())
    assert_in_order(registrations)
    assert begin <= registrations[0, 0] and registrations[-1, 1] <= end
    assert begin + pinned.touch_ns <= registrations[0, 0]
    begin, end = pinned.unpin()
    unregistrations = timed().unregistrations()
    assert len(unregistrations) == 4
    assert_in_order(unregistrations)
    assert begin <= unregistrations[0, 0] and unregistrations[-1, 1] <= end


def test_times_are_those_of_the_last_pinning() -> None:
    for size in (SIZE, HUGE_PAGE):
        module(NAME).Pinned(size, HUGE_PAGE, 2).unpin()
    assert len(timed().registrations()) == len(timed().unregistrations()) == 1


def test_a_failed_registration_has_no_time() -> None:
    refuse_registration(NAME, 2)
    try:
        with pytest.raises(RuntimeError, match="cudaHostRegister: out of memory"):
            module(NAME).Pinned(SIZE, HUGE_PAGE, 2)
        assert len(timed().registrations()) == len(timed().unregistrations()) == 2
    finally:
        refuse_registration(NAME, -1)


def test_waits_for_a_core_are_counted() -> None:
    """This system counts them if the file is there."""
    module(NAME).Pinned(SIZE, HUGE_PAGE, 2).unpin()
    assert ((timed().registrations()[:, 3] >= 0) == SCHEDSTAT.exists()).all()


@pytest.mark.skipif(not SCHEDSTAT.exists(), reason="this system does not count waits for a core")
def test_a_thread_that_shares_its_core_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each cudaFree sleeps on this runtime, and then its thread waits for the core."""
    monkeypatch.setenv("FAKE_CUDA_CALLS", str(tmp_path / "calls"))
    cores = os.sched_getaffinity(0)
    spinning = get_context("fork").Process(target=_spin, daemon=True)
    os.sched_setaffinity(0, {min(cores)})
    try:
        spinning.start()
        deadline = time.monotonic() + NEIGHBOURS.ANSWERS_WITHIN_S
        waited_ns = 0
        while waited_ns < 1_000_000:
            assert time.monotonic() < deadline, "the neighbour waits for no core"
            neighbour = timed().TimedNeighbour()
            time.sleep(0.05)
            times = neighbour.stop()
            waited_ns += int(times[:, 3].sum())
            del neighbour  # the next one would share its file
            assert (times[:, 3] - (times[:, 1] - times[:, 0]) < 100_000).all()
    finally:
        os.sched_setaffinity(0, cores)
        spinning.kill()
        spinning.join()


def _spin() -> None:
    end_with_parent()
    while True:
        pass


def test_a_thread_makes_calls_in_order() -> None:
    neighbour = timed().TimedNeighbour()
    times = neighbour.stop()
    while len(times) < 2:
        neighbour = timed().TimedNeighbour()
        times = neighbour.stop()
    assert len(times) % 2 == 0
    assert_in_order(times)


def test_chunks_are_timed_without_a_neighbour(workload: Any) -> None:
    operation = bound(workload, case(5))
    assert outcome(operation) is None
    samples = operation.own_samples(0, 1)
    assert set(samples) <= set(PINNING.metrics)
    assert {"register_time", "chunk_register_worst", "chunk_unregister_worst"} <= set(samples)
    assert not any(name.startswith(("call_", "unpin_w", "alone_", "touch_w")) for name in samples)


@pytest.fixture
def _overlapping_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the fake runtime and the time alone wait for calls: an overloaded machine may run no
    neighbour for longer than either takes."""
    calls = tmp_path / "calls"
    monkeypatch.setenv("FAKE_CUDA_CALLS", str(calls))

    def sleep(seconds: float) -> None:
        if seconds:
            wait_for_calls(calls)

    monkeypatch.setattr(TIMED_WORKLOAD, "time", SimpleNamespace(sleep=sleep))


def test_calls_of_a_process_are_compared_with_chunks(
    _overlapping_calls: None, workload: Any
) -> None:
    operation = bound(workload, case(64, beside="process", calls="malloc"))
    assert outcome(operation) is None
    samples = operation.own_samples(0, 1)
    touching = {"touch_worst"}  # an overloaded machine may touch before it runs the neighbour
    uncounted = {name for name in PINNING.metrics if name.endswith("_queued")}
    assert set(samples) >= set(PINNING.metrics) - SLOW_ONLY - touching - uncounted
    assert set(samples) <= set(PINNING.metrics)
    for kind in ("call", "unpin"):
        shares = [samples[f"{kind}_worst_{name}"][0] for name in ("in_one", "in_chunks")]
        assert 0 <= shares[0] <= shares[1] <= 1
        assert samples[f"{kind}_worst"][0] >= samples[f"{kind}_median"][0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"beside": "thread", "calls": "malloc"},
            "beside: expected nobody or process, got 'thread'",
        ),
        (
            {"beside": "friend", "calls": "malloc"},
            "beside: expected nobody or process, got 'friend'",
        ),
        ({"beside": "process", "calls": "copy"}, "calls: expected malloc, got 'copy'"),
    ],
)
def test_another_neighbour_is_an_error(workload: Any, values: dict[str, str], message: str) -> None:
    with pytest.raises(FieldError, match=message):
        bound(workload, case(5, **values))


def test_a_module_without_times_is_an_error_of_the_neighbour(workload: Any) -> None:
    del workload
    neighbour = TIMED_WORKLOAD.Workload._timed
    with pytest.raises(RuntimeError, match=r"neighbour: .*PyInit_timed"):
        neighbour.start(module("chunks"))


def test_a_process_that_ends_is_reported(workload: Any) -> None:
    process = TIMED_WORKLOAD.Workload._timed._process
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with pytest.raises(RuntimeError, match="neighbour: its process ended"):
        bound(workload, case(5, beside="process", calls="malloc")).launch(0)
