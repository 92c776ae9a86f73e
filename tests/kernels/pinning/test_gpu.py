"""Pinning on a GPU: copies of real registrations, and calls of a neighbour."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from analysis.study import Study
from tests.compiled import gpu_module
from tests.conformance.binding import outcome
from tests.kernels.pinning.test_pinning import (
    CONSTANTS,
    HUGE_PAGE,
    PINNING,
    TIMED_WORKLOAD,
    WORKLOAD,
    case,
)

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def _with_context(stream: int) -> Iterator[None]:
    """A CUDA context in this process."""
    del stream
    yield


def failure(study: Study, name: str, **values: int | str) -> str | None:
    workloads = TIMED_WORKLOAD if study.variant(name).workload == "timed_workload" else WORKLOAD
    inputs = workloads.Workload(CONSTANTS, np.random.default_rng(0)).prepare(case(13, **values))
    operation = inputs.bind(study.variant(name), gpu_module(study, name))
    wrong = outcome(operation)
    assert wrong or operation.own_samples(0, 1)
    return wrong


@pytest.mark.parametrize("name", PINNING.variant_names)
def test_pinned_memory_is_copied_rightly(name: str) -> None:
    assert failure(PINNING, name) is None


@pytest.mark.parametrize("calls", ["copy", "launch", "malloc", "info"])
def test_a_thread_calls_meanwhile(calls: str) -> None:
    assert failure(PINNING, "chunks", beside="thread", calls=calls) is None


@pytest.mark.parametrize("name", ["chunks", "touched_by_threads", "virtual_memory"])
def test_only_registrations_split_a_copy(name: str) -> None:
    pinned = gpu_module(PINNING, name).Pinned(3 * HUGE_PAGE, HUGE_PAGE, 2)
    device = WORKLOAD.DeviceArray((2,), np.uint8, "device")
    status = pinned.copy_as_one(device.pointer, HUGE_PAGE - 1, 2, True, 0)
    assert (status != 0) == (name == "chunks")
    address = ctypes.c_void_p(pinned.address)
    pinned.unpin()
    if name == "chunks":  # pages are back with the system
        libc, resident = ctypes.CDLL(None, use_errno=True), (ctypes.c_ubyte * 1)()
        assert libc.mincore(address, ctypes.c_size_t(4096), resident) == -1
