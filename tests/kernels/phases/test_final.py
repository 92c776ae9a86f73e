"""Guarantees of p4_final and of the steps after it, over a source that only counts."""

from __future__ import annotations

import pytest

from allocator.lib import patterns
from tests.kernels.phases.modules import MIB, STUDY, Host, built


def test_a_block_waits_for_the_streams_that_use_it(ours: Host) -> None:
    pointer = ours.allocate(MIB, stream=1)
    ours.source.enqueue(0, 2)
    ours.record_stream(pointer, 2)
    ours.free(pointer)
    # Two of them are a segment: a third request would have to take what is waiting.
    held = [ours.allocate(MIB, stream=1) for _ in range(3)]
    assert pointer not in held
    ours.source.complete(0, 2, 1)
    assert pointer in [ours.allocate(MIB, stream=1) for _ in range(2)]


def test_a_whole_segment_is_broken_up_after_what_waits_is_let_go(ours: Host) -> None:
    used, _, *spare = [ours.allocate(MIB, stream=1) for _ in range(4)]
    for pointer in spare:
        ours.free(pointer)
    ours.trim(keep=4 * MIB)  # merges the second segment
    ours.source.enqueue(0, 2)
    ours.record_stream(used, 2)
    ours.free(used)
    ours.source.complete(0, 2, 1)
    assert ours.allocate(4096, stream=1) == used


def test_one_event_a_stream_serves_a_batch(final: Host) -> None:
    pointers = [final.allocate(4096, stream=1) for _ in range(32)]
    for pointer in pointers:
        final.record_stream(pointer, 2)
        final.record_stream(pointer, 3)
        final.free(pointer)
    assert final.source.counts()["event_records"] == 2


def test_heaps_of_streams_and_devices_are_apart(ours: Host) -> None:
    here = ours.allocate(4096, device=0, stream=1)
    ours.free(here, device=0)
    assert ours.allocate(4096, device=0, stream=2) != here
    assert ours.source.counts(1)["reserved"] == 0
    ours.allocate(4096, device=1, stream=1)
    assert ours.source.counts(1)["reserved"] == 2 * MIB


@pytest.mark.parametrize("step", ["p4_final", "p5_dropin"])
def test_exhausted_memory_is_waited_for_before_it_is_an_error(step: str) -> None:
    ours = Host(built(step), capacity=20 * MIB)
    pointer = ours.allocate(16 * MIB, stream=1)
    ours.source.enqueue(0, 2)
    ours.record_stream(pointer, 2)
    ours.free(pointer)
    assert ours.allocate(16 * MIB, stream=3)  # another heap: waits, returns the segment, grows
    assert ours.source.counts()["event_waits"] > 0
    with pytest.raises(ours.module.OutOfMemory, match="asked for 16777216 B"):
        ours.allocate(16 * MIB, stream=3)


def test_a_limit_holds_and_a_trim_returns(ours: Host) -> None:
    ours.set_limit(0, 30 * MIB)
    held = ours.allocate(16 * MIB)
    with pytest.raises(ours.module.OutOfMemory, match="limit 31457280"):
        ours.allocate(16 * MIB)
    ours.free(held)
    ours.trim(keep=16 * MIB)
    assert ours.source.counts()["reserved"] == 16 * MIB
    ours.trim()
    assert ours.source.counts()["reserved"] == 0


def test_pointers_that_are_not_live_are_refused(ours: Host) -> None:
    pointer, kept = ours.allocate(4096), ours.allocate(4096)
    ticket = ours.ticket(pointer)
    ours.free(pointer)
    invalid = ours.module.InvalidPointer
    for bad, why in {
        pointer: "already freed",
        kept + 512: "inside a live allocation",
        kept + 65536: "inside free memory",
        0x1234: "did not hand out",
    }.items():
        with pytest.raises(invalid, match=why):
            ours.free(bad)
    assert ours.allocate(4096) == pointer
    with pytest.raises(invalid, match="ticket"):
        ours.free_ticket(pointer, ticket)
    with pytest.raises(ValueError, match="device: expected 0 to 15, got 99"):
        ours.allocate(1, device=99)


@pytest.mark.parametrize("size", [2**44, 2**44 + 1, 2**45, 2**46, 2**63, 2**64 - 1])
def test_absurd_sizes_are_out_of_memory(ours: Host, size: int) -> None:
    with pytest.raises(ours.module.OutOfMemory):
        ours.allocate(size)
    assert ours.statistics()["allocations"] == 0


# Without threads, whose peaks vary, and without Python's tapes, which repeat those of C++.
SETTLING = [
    str(case["pattern"])
    for case in STUDY.variant("p4_final").in_grid("default")
    if not str(case["pattern"]).startswith(("threads_", "python."))
]


@pytest.mark.parametrize("name", SETTLING)
def test_a_tape_seen_before_is_replayed_without_the_driver(ours: Host, name: str) -> None:
    pattern = patterns.PATTERNS[name]()
    runner = ours.module.Runner(ours.allocator, pattern.tapes, list(range(pattern.streams)))
    runner.run(5)
    ours.reset_statistics()
    runner.run(60)
    assert ours.statistics()["driver_calls"] == 0
