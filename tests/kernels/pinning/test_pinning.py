"""Pinning on a CUDA runtime without a GPU: registrations, copies over their borders, neighbours."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.measure.cell import Operation, Skip
from analysis.study import Case, CaseValue
from analysis.toolchain.modules import load_python
from tests.conformance.binding import outcome
from tests.kernels.stubbed import stubbed
from tests.repository import STUDIES
from tests.waiting import wait_for

PINNING = STUDIES["pinning"]
TIMED = "timed_chunks"
IF_LONG = pytest.mark.long  # of TIMED, whose own bindings take as long as those of all others
WORKLOAD, TIMED_WORKLOAD, TIMED_NEIGHBOUR, WAITS, NEIGHBOURS = (
    load_python(PINNING, name)
    for name in ("workload", "timed_workload", "timed_neighbour", "waits", "neighbours")
)
CONSTANTS = {**PINNING.constants, "chunk_mib": 2}
HUGE_PAGE = 2**21
SIZE = 3 * HUGE_PAGE + 12_345
"""Three chunks of a huge page and a part."""
CHUNKED = ["chunks", "chunks_by_threads", "overlapped", TIMED]
LIKE_OTHERS = {"virtual_memory", "chunks_again", "small_chunks", "huge_pages", "untouched"}
"""Variants for a GPU only, or that differ from others in one call."""
pytestmark = pytest.mark.usefixtures("fake")


def case(mib: int, **values: CaseValue) -> Case:
    return Case({"mib": mib, "beside": "nobody", **values}, mib * 2**20, "default")


def module(name: str) -> Any:
    return stubbed(PINNING, name)


def bound(name: str, of: Case, workload: Any = None, built: Any = None) -> Operation:
    workloads = TIMED_WORKLOAD if name == TIMED else WORKLOAD
    workload = workload or workloads.Workload(CONSTANTS, np.random.default_rng(0))
    operation: Operation = workload.prepare(of).bind(PINNING.variant(name), built or module(name))
    return operation


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(v.name, marks=[IF_LONG] if v.name == TIMED else [])
        for v in PINNING.variants
        if v.is_compiled and v.name not in LIKE_OTHERS
    ],
)
def test_pinned_memory_passes_and_is_unpinned(name: str) -> None:
    built, is_chunked = module(name), name in CHUNKED
    pinned = built.Pinned(SIZE, HUGE_PAGE, 3)
    assert built.runtime.pinned_ranges() == (4 if is_chunked else 1)
    assert name == "host_alloc" or pinned.address % HUGE_PAGE == 0
    pinned.unpin()
    assert built.runtime.pinned_ranges() == 0
    if is_chunked:
        built.runtime.fail_at(2)
        with pytest.raises(RuntimeError, match="cudaHostRegister: refused"):
            built.Pinned(SIZE, HUGE_PAGE, 3)
        assert built.runtime.pinned_ranges() == 0
    operation = bound(name, case(5))
    for _ in range(2):
        operation.launch(0)  # which unpins the memory of the previous one
    assert outcome(operation) is None
    samples = operation.own_samples(0, 1)
    wanted = {"host_time", "unpin_time", "copy_time", "border_copy_status"}
    assert wanted <= set(samples) <= set(PINNING.metrics)
    assert (samples["border_copy_status"] != [0.0]) == is_chunked
    assert built.runtime.pinned_ranges() == 0


def broken(fault: str, *of: int) -> Any:
    """Pinned memory whose copies go wrong."""
    pinned = module("chunks").Pinned(*of)

    def copy(device: int, offset: int, size: int, to_device: bool, stream: int) -> None:
        if fault == "to the device: byte":
            size = min(size, HUGE_PAGE - offset % HUGE_PAGE)  # up to the border
        if fault != "from the device: expected another value" or to_device:
            pinned.copy(device, offset, size, to_device, stream)

    lines = pinned.copy_lines if fault != "a line of each 64 KiB" else lambda *_: None
    rest = {name: getattr(pinned, name) for name in dir(pinned) if name[0] != "_"}
    return SimpleNamespace(**{**rest, "copy": copy, "copy_lines": lines})


FAULTS = "to the device: byte", "from the device: expected another value", "a line of each 64 KiB"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_copy_is_found(fault: str) -> None:
    pinned = SimpleNamespace(Pinned=partial(broken, fault))
    assert fault in (outcome(bound("chunks", case(5), built=pinned)) or "")


@IF_LONG
def test_each_chunk_of_the_last_pinning_is_timed() -> None:
    timed: Any = TIMED_NEIGHBOUR.timed_module(module(TIMED))
    for size, count in ((HUGE_PAGE, 1), (SIZE, 4)):
        pinned = module(TIMED).Pinned(size, HUGE_PAGE, 2)
        registered = (pinned.pinned_ns[0] + pinned.touch_ns, pinned.pinned_ns[1])
        for (first, last), chunks in (
            (registered, timed.registrations()),
            (pinned.unpin(), timed.unregistrations()),
        ):
            begin, end, on_core, _ = chunks.T
            assert len(chunks) == count and first <= begin[0] and end[-1] <= last
            assert (end >= begin).all() and (begin[1:] >= end[:-1]).all() and (on_core >= 0).all()


# Neighbours.


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


@pytest.mark.parametrize(
    ("name", "beside", "calls"),
    [
        *(("chunks", "thread", calls) for calls in ("copy", "info")),
        ("chunks", "process", "malloc"),
        pytest.param(TIMED, "process", "malloc", marks=IF_LONG),
    ],
)
def test_a_neighbour_is_timed_before_and_meanwhile(
    workloads: dict[str, Any], name: str, beside: str, calls: str
) -> None:
    """A busy machine may run no neighbour for longer than a pinning takes."""
    operation = bound(name, case(64, beside=beside, calls=calls), workloads[name])
    samples: dict[str, float] = {}

    def is_timed() -> bool:
        operation.launch(0)
        samples.update({one: values[0] for one, values in operation.own_samples(0, 1).items()})
        return {"alone_p99", "call_p99", "unpin_p99", "p99_slowdown"} <= samples.keys()

    wait_for(is_timed)
    assert samples.keys() <= PINNING.metrics.keys()
    for kind in ("alone", "call", "unpin"):
        median, p99, worst = (samples[f"{kind}_{one}"] for one in ("median", "p99", "worst"))
        assert 0 < median <= p99 <= worst
    if name == TIMED:
        assert 0 <= samples["call_worst_in_one"] <= samples["call_worst_in_chunks"] <= 1


def test_a_neighbour_that_ends_is_an_error_and_too_little_memory_a_skip(
    workloads: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError, match="neighbour: calls: expected copy, launch, malloc or"):
        bound("chunks", case(5, beside="process", calls="sing"), workloads["chunks"]).launch(0)
    process = WORKLOAD.Workload._process._process
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with pytest.raises(RuntimeError, match="neighbour: its process ended"):
        bound("chunks", case(5, beside="process", calls="malloc"), workloads["chunks"]).launch(0)
    monkeypatch.setattr(WORKLOAD, "largest_pool", lambda: 2**20)
    with pytest.raises(Skip, match="this host allows 1048576 B"):
        bound("chunks", case(5))


# What calls of a neighbour waited for, by made-up times.

MS = 1_000_000
LEFT_OUT = -1.0
UNKNOWN = -1 / MS
"""The counter of the queue is -1."""
WHOLE = 0, 1000 * MS


def calls(*times: tuple[float, ...]) -> Any:
    """Calls of begin, end, time on a core and time in its queue, in ms."""
    return (np.array(times).reshape(-1, 4) * MS).round().astype(np.int64)


CHUNKS = calls((10, 12, 2, 0), (12, 14, 2, 0), (14, 16, 2, 0))
"""Three registrations in turn; pages are touched before."""

WAITS_OF: dict[str, tuple[Any, dict[str, float]]] = {
    "within one chunk": (
        calls((9, 9.5, 0.5, 0), (12.1, 14.05, 0.1, 0)),
        {"worst": 1.95e-3, "worst_chunks": 2, "worst_in_chunks": 1, "worst_in_one": 1.9 / 1.95}
        | {"worst_running": 0.1 / 1.95, "worst_queued": 0, "worst_touching": 0, "slow": 0}
        | {"worst_end_gap": 0.05e-3, "worst_bound": 1.95 / 3.4, "slow_in_chunks": LEFT_OUT},
    ),
    "for several chunks": (
        calls((10.5, 15.5, 0, 0)),
        {"worst_chunks": 3, "worst_in_chunks": 1, "worst_in_one": 0.4, "worst_end_gap": 0.5e-3}
        | {"worst_bound": 5 / 3.4},
    ),
    "while pages are touched": (
        calls((1, 9, 8, 0), (12, 13, 1, 0)),
        {"worst_touching": 1, "worst_chunks": 0, "worst_in_chunks": 0},
    ),
    "slow calls are summed up": (
        calls((2, 9, 1, 6), (9, 10, 1, 0), (10, 17, 1, 0)),
        {"slow": 2, "slow_in_chunks": 6 / 14, "slow_queued": 6 / 14},
    ),
    "unknown waits for a core": (
        calls((10, 18, 8, UNKNOWN)),
        {"worst_queued": LEFT_OUT, "slow_queued": LEFT_OUT, "worst_running": 1, "slow": 1},
    ),
    "no calls": (calls(), {"worst": LEFT_OUT, "slow": LEFT_OUT}),
}
"""Calls of a neighbour and some of their statistics."""


@pytest.mark.parametrize("name", WAITS_OF)
def test_waits_are_those_of_the_longest_and_of_slow_calls(name: str) -> None:
    times, expected = WAITS_OF[name]
    found = WAITS.neighbour_waits("call_", times, CHUNKS, WHOLE, (0, 10 * MS))
    assert set(found) <= set(PINNING.metrics)
    waits = {one: found.get(f"call_{one}", LEFT_OUT) for one in expected}
    assert waits == pytest.approx(expected)


def test_only_calls_in_the_window_count_and_the_percentile_is_one_of_them() -> None:
    times = calls((0, 9, 9, 0), (12, 13, 1, 0), (20, 40, 1, 0))
    found = WAITS.neighbour_waits("call_", times, CHUNKS, (9 * MS, 20 * MS))
    assert found["call_worst"] == pytest.approx(1e-3) and found["call_slow"] == 0
    assert WAITS.neighbour_waits("call_", times, calls(), WHOLE) == {}
    found = NEIGHBOURS.summary("call_", np.arange(1, 201) / 100)
    assert found == {"call_median": 1.005, "call_p99": 1.99, "call_worst": 2.0}
