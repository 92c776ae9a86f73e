"""What p4_final promises, over a source that only counts."""

from __future__ import annotations

import pytest

from tests.allocator.modules import MIB, STUDY, Host, built, patterns


def test_a_block_waits_for_the_streams_that_use_it(final: Host) -> None:
    pointer = final.allocate(MIB, stream=1)
    final.source.enqueue(0, 2)
    final.record_stream(pointer, 2)
    final.free(pointer)
    # Two of them are a segment: a third request would have to take what is waiting.
    held = [final.allocate(MIB, stream=1) for _ in range(3)]
    assert pointer not in held
    final.source.complete(0, 2, 1)
    assert pointer in [final.allocate(MIB, stream=1) for _ in range(2)]


def test_a_whole_segment_is_broken_up_after_what_waits_is_let_go(final: Host) -> None:
    used, _, *spare = [final.allocate(MIB, stream=1) for _ in range(4)]
    for pointer in spare:
        final.free(pointer)
    final.trim(keep=4 * MIB)  # merges the second segment
    final.source.enqueue(0, 2)
    final.record_stream(used, 2)
    final.free(used)
    final.source.complete(0, 2, 1)
    assert final.allocate(4096, stream=1) == used


def test_one_event_a_stream_serves_a_batch(final: Host) -> None:
    pointers = [final.allocate(4096, stream=1) for _ in range(32)]
    for pointer in pointers:
        final.record_stream(pointer, 2)
        final.record_stream(pointer, 3)
        final.free(pointer)
    assert final.source.counts()["event_records"] == 2


def test_heaps_of_streams_and_devices_are_apart(final: Host) -> None:
    here = final.allocate(4096, device=0, stream=1)
    final.free(here, device=0)
    assert final.allocate(4096, device=0, stream=2) != here
    assert final.source.counts(1)["reserved"] == 0
    final.allocate(4096, device=1, stream=1)
    assert final.source.counts(1)["reserved"] == 2 * MIB


def test_exhausted_memory_is_waited_for_before_it_is_an_error() -> None:
    final = Host(built("p4_final"), capacity=20 * MIB)
    pointer = final.allocate(16 * MIB, stream=1)
    final.source.enqueue(0, 2)
    final.record_stream(pointer, 2)
    final.free(pointer)
    assert final.allocate(16 * MIB, stream=3)  # another heap: waits, returns the segment, grows
    assert final.source.counts()["event_waits"] > 0
    with pytest.raises(final.module.OutOfMemory, match="asked for 16777216 B"):
        final.allocate(16 * MIB, stream=3)


def test_a_limit_holds_and_a_trim_returns(final: Host) -> None:
    final.set_limit(0, 30 * MIB)
    held = final.allocate(16 * MIB)
    with pytest.raises(final.module.OutOfMemory, match="limit 31457280"):
        final.allocate(16 * MIB)
    final.free(held)
    final.trim(keep=16 * MIB)
    assert final.source.counts()["reserved"] == 16 * MIB
    final.trim()
    assert final.source.counts()["reserved"] == 0


def test_pointers_that_are_not_live_are_refused(final: Host) -> None:
    pointer, kept = final.allocate(4096), final.allocate(4096)
    ticket = final.ticket(pointer)
    final.free(pointer)
    invalid = final.module.InvalidPointer
    for bad, why in {
        pointer: "already freed",
        kept + 512: "inside a live allocation",
        kept + 65536: "inside free memory",
        0x1234: "did not hand out",
    }.items():
        with pytest.raises(invalid, match=why):
            final.free(bad)
    assert final.allocate(4096) == pointer
    with pytest.raises(invalid, match="ticket"):
        final.free_ticket(pointer, ticket)
    with pytest.raises(ValueError, match="device: expected 0 to 15, got 99"):
        final.allocate(1, device=99)


@pytest.mark.parametrize("size", [2**44, 2**44 + 1, 2**45, 2**46, 2**63, 2**64 - 1])
def test_absurd_sizes_are_out_of_memory(final: Host, size: int) -> None:
    with pytest.raises(final.module.OutOfMemory):
        final.allocate(size)
    assert final.statistics()["allocations"] == 0


# What threads hold at once is theirs to decide; tapes from Python are those of C++ once more.
SETTLING = [
    str(case["pattern"])
    for case in STUDY.variant("p4_final").in_grid("default")
    if not str(case["pattern"]).startswith(("threads_", "python."))
]


@pytest.mark.parametrize("name", SETTLING)
def test_a_tape_seen_before_is_replayed_without_the_driver(final: Host, name: str) -> None:
    pattern = patterns.PATTERNS[name]()
    runner = final.module.Runner(final.own, pattern.tapes, list(range(pattern.streams)))
    runner.run(5)
    final.reset_statistics()
    runner.run(60)
    assert final.statistics()["driver_calls"] == 0
