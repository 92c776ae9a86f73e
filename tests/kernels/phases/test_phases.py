"""The phases of the write-up keep their rules and defects; what the steps after them add."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.toolchain.modules import load_module
from tests.kernels.phases.modules import GIB, MIB, STUDY, Host

EARLY = ("p0_driver", "p1_exact_cache", "p2_size_buckets", "p3_block_pool")
FINAL = ("p4_final", "p5_dropin")


SIZES = st.sampled_from([1, 512, 513, 1024, 1025, MIB - 1, MIB, 5 * MIB, 16 * MIB, 16 * MIB + 1])
LARGE = st.sampled_from([GIB // 2, GIB // 3, GIB, 2 * GIB])
ACTIONS = st.lists(SIZES | LARGE | st.integers(-10, -1), max_size=60)
"""Bytes of a request, or the index of an allocation to free, from the last one on."""


@pytest.mark.parametrize("phase", range(4))
@given(actions=ACTIONS)
@settings(max_examples=150)
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


@pytest.mark.parametrize("name", ["p4_tlsf", "p4_exact_front", "p4_final", "p5_dropin"])
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
    assert host.calls == (1, 0)


@pytest.mark.parametrize("name", FINAL)
def test_a_remainder_for_small_requests_stays_with_its_large_block(name: str) -> None:
    host = Host(name)
    host.allocate(19 * MIB, stream=1)
    host.allocate(19 * MIB - 512, stream=2)
    sizes = sorted(block["size"] for block in host.snapshot())
    assert sizes == [MIB + 512, 19 * MIB - 512, 20 * MIB]


def test_one_event_a_stream_serves_a_batch() -> None:
    host = Host("p4_final")
    for pointer in [host.allocate(4096, stream=1) for _ in range(32)]:
        for stream in (2, 3):
            host.record_stream(pointer, stream)
        host.free(pointer)
    assert host.source.counts()["event_records"] == 2


@pytest.mark.parametrize("name", FINAL)
def test_exhausted_memory_is_waited_for_before_it_is_an_error(name: str) -> None:
    host = Host(name, capacity=20 * MIB)
    pointer = host.allocate(16 * MIB, stream=1)
    host.source.enqueue(0, 2)
    host.record_stream(pointer, 2)
    host.free(pointer)
    assert host.allocate(16 * MIB, stream=3)  # another heap: waits, returns the segment, grows
    assert host.source.counts()["event_waits"] > 0
    for size in (16 * MIB, 2**44, 2**44 + 1, 2**63, 2**64 - 1):
        with pytest.raises(host.module.OutOfMemory, match=f"asked for {size} B"):
            host.allocate(size, stream=3)
    host.set_limit(0, 30 * MIB)
    with pytest.raises(host.module.OutOfMemory, match="limit 31457280"):
        host.allocate(16 * MIB)
