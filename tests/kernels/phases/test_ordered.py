"""Streams that wait for others on the device when much freed memory is in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels.phases.modules import with_fault_in_allocator
from tests.kernels.phases.native import native, ran

STILL_READ = "some that a stream still reads"
ORDER = "-DSOURCE=HostileOrder"
FAULTS = {
    "no stream ever waits": (
        "if (memory_.order == nullptr || ",
        "if (memory_.order != nullptr || ",
        "expected 64 MiB, got 128 MiB",
    ),
    "streams always wait": (
        "bytes_ < memory_.arena.reserved() / kMinPendingDivisor",
        "false",
        "expected 544 MiB, got 528 MiB",
    ),
    "the stream does not wait": (
        "if (of_heap != batch.blocks.end()) {",
        "if (false) {",
        STILL_READ,
    ),
    "memory of later batches is handed out": (
        "std::for_each(queue.batches.begin(), std::next(first),",
        "std::for_each(queue.batches.begin(), queue.batches.end(),",
        "expected a wait for the first use",
    ),
    "the stream waits for the last event alone": (
        "batch.event);\n    }",
        "queues_.begin()->second.batches.back().event);\n    }",
        "expected a wait for the first use",
    ),
    "memory of other streams is handed out": (
        "return &block->segment_pool->heap != &heap;",
        "return false;",
        STILL_READ,
    ),
    "one of two users is enough": (
        "if (--block->pending_events == 0) {",
        "--block->pending_events;\n    {",
        STILL_READ,
    ),
    "a captured stream waits": (
        "reserved() / kMinPendingDivisor ||\n        is_captured(stream)) {",
        "reserved() / kMinPendingDivisor) {",
        "dependency created on uncaptured work",
    ),
}


def test_what_waits_is_used_again_behind_those_that_use_it() -> None:
    done = ran(native("ordered", "ordered.cpp", ORDER, variant="p5_dropin"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str, tmp_path: Path) -> None:
    right, wrong, expected = FAULTS[fault]
    changed = with_fault_in_allocator(tmp_path, "stream_waits.h", right, wrong)
    name = f"ordered-{list(FAULTS).index(fault)}"
    done = ran(native(name, "ordered.cpp", ORDER, variant="p5_dropin", folder=changed))
    assert done.returncode == 1, done.stdout + done.stderr
    assert expected in done.stdout
