"""The phases of the write-up keep their rules and defects; later steps; tapes and their replay."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.lib import patterns, recorded
from analysis.measure.cell import Skip
from analysis.study import Case
from analysis.toolchain.modules import load_module
from tests.kernels.phases.modules import GIB, MIB, STUDY, Host, built, workload

EARLY = ("p0_driver", "p1_exact_cache", "p2_size_buckets", "p3_block_pool")
FINAL = ("p4_final", "p5_dropin")
PATTERNS = patterns.PATTERNS

SIZES = st.sampled_from([1, 512, 513, 1024, 1025, MIB - 1, MIB, 5 * MIB, 16 * MIB, 16 * MIB + 1])
LARGE = st.sampled_from([GIB // 2, GIB // 3, GIB, 2 * GIB])
ACTIONS = st.lists(SIZES | LARGE | st.integers(-10, -1), max_size=60)
"""Bytes of a request, or the index of an allocation to free, from the last one on."""


@pytest.mark.parametrize("phase", range(4))
@given(actions=ACTIONS)
@settings(max_examples=60)
def test_phases_are_those_of_the_write_up(phase: int, actions: list[int]) -> None:
    """Addresses and calls of the driver are those of the write-up's code in Python."""
    host, driver = Host(EARLY[phase]), Host("p0_driver")
    memory: Any = load_module(Path(), STUDY, STUDY.variant(f"published_p{phase}")).Memory(driver)
    live: list[int] = []
    for action in actions:
        if action > 0:
            live.append(host.allocate(action))
            assert memory.allocate(action) == live[-1]
        elif -action <= len(live):
            pointer = live.pop(action)
            host.free(pointer)
            memory.free(pointer)
        assert host.source.counts() == driver.source.counts()


@pytest.mark.parametrize("name", ["p4_tlsf", "p4_exact_front", *FINAL])
def test_later_steps_grow_in_pytorchs_segments(name: str) -> None:
    asked = (1, MIB, MIB + 1, 10 * MIB - 512, 10 * MIB, 10 * MIB + 1)
    for size, segment_mib in zip(asked, (2, 2, 20, 20, 10, 12), strict=True):
        host = Host(name)
        host.allocate(size)
        assert host.source.counts()["reserved"] == segment_mib * MIB


def test_the_front_keeps_the_last_run_of_one_size() -> None:
    host = Host("p4_exact_front")
    for sizes, kept in (((4096, 4096, 8192, 8192), 2 * [8192]), (40 * [4096], 32 * [4096])):
        for pointer in [host.allocate(size) for size in sizes]:
            host.free(pointer)
        assert [b["size"] for b in host.snapshot() if b["state"] == "cached"] == kept


def test_the_last_fit_of_a_bin_is_found() -> None:
    """Ten blocks of the request's bin are too small, and one behind them in the list is not."""
    host = Host("p4_tlsf")
    granule, small, fit = 512, 200, 203  # of granules; one bin holds 200 to 203
    pointers = []
    for size in [*[small] * 10, fit]:
        pointers.append(host.allocate(size * granule))
        host.allocate(granule)  # keeps them apart
    host.allocate((4096 - 10 * (small + 1) - (fit + 1)) * granule)  # the rest of the segment
    for pointer in reversed(pointers):
        host.free(pointer)
    assert host.allocate(fit * granule) == pointers[-1]


@pytest.mark.parametrize("name", FINAL)
def test_exhausted_memory_is_waited_for_before_it_is_an_error(name: str) -> None:
    host = Host(name, capacity=20 * MIB)
    pointer = host.allocate(19 * MIB - 512, stream=1)  # the rest is for large requests only
    assert [block["size"] for block in host.snapshot()] == [19 * MIB - 512, MIB + 512]
    host.source.enqueue(0, 2)
    host.record_stream(pointer, 2)
    host.free(pointer)
    host.allocate(19 * MIB, stream=3)  # another heap: waits, returns the segment, grows
    assert [block["size"] for block in host.snapshot()] == [20 * MIB]
    assert host.source.counts()["event_waits"] > 0
    for size in (16 * MIB, 2**44, 2**63, 2**64 - 1):
        with pytest.raises(host.module.OutOfMemory, match=f"asked for {size} B"):
            host.allocate(size, stream=3)


def test_one_event_a_stream_serves_a_batch() -> None:
    host = Host("p4_final")
    for pointer in [host.allocate(4096, stream=1) for _ in range(32)]:
        for stream in (2, 3):
            host.record_stream(pointer, stream)
        host.free(pointer)
    assert host.source.counts()["event_records"] == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(4, 0, 1, 0)], "operation 0: expected kind 0 to 3, got 4"),
        ([(0, 0, 1, 0), (0, 0, 1, 0)], "operation 1: expected an empty slot"),
        ([(1, 0, 0, 0)], "operation 0: expected a slot in use"),
        ([(0, 0, 1, 0)], "expected every allocation freed at its end, got 1 left"),
    ],
)
def test_a_tape_that_makes_no_sense_is_refused(rows: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Host("p4_final").replay([np.array(rows, np.uint64)])


@pytest.mark.parametrize("name", sorted(name for name in PATTERNS if "_100000_" not in name))
def test_every_pattern_frees_what_it_allocates_and_comes_again(name: str) -> None:
    pattern, again = PATTERNS[name](), PATTERNS[name]()
    runner = Host("p4_final").replay(pattern.tapes, pattern.streams)
    assert len(pattern.tapes) == 1 or runner.check(False) > 0  # by threads at once
    assert all(np.array_equal(a, b) for a, b in zip(pattern.tapes, again.tapes, strict=True))


@pytest.mark.parametrize("name", [*EARLY, "p4_tlsf", "p4_exact_front", "p4_final"])
def test_the_workload_measures_every_allocator(name: str) -> None:
    module, pattern = built(name), PATTERNS["varying_sizes"]()
    parts = workload.Reported.CALLS | workload.Reported.MEMORY | workload.Reported.LATENCIES
    operation = workload.CppReplay(
        module, pattern, parts, source=lambda: module.HostSource(9 * GIB)
    )
    assert operation.check() == "never replayed"
    operation.launch(0)
    assert operation.check() is None
    samples = operation.own_samples(0, 1)
    assert set(samples) <= set(STUDY.metrics)
    assert samples["op_time"][0] > 0
    assert samples["driver_calls"][0] == (len(pattern.tapes[0]) if name == "p0_driver" else 0)


def test_memory_handed_out_twice_is_a_fault() -> None:
    calls = workload.RawCalls(lambda size: 4096, lambda held: None)
    operation = workload.PythonReplay(PATTERNS["same_size"](), lambda: calls)
    operation.launch(0)
    assert "live allocation" in operation.check()


def test_a_missing_trace_is_a_skip_a_changed_one_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = "trace_cnn_training"
    monkeypatch.setitem(recorded.SHA256, "cnn_training", "another")
    with pytest.raises(ValueError, match="digest"):
        PATTERNS[name]()
    monkeypatch.setattr(patterns, "TRACES", tmp_path)
    with pytest.raises(Skip, match="not recorded"):
        workload.Workload({}, np.random.default_rng(0)).prepare(Case({"pattern": name}, 0, ""))
