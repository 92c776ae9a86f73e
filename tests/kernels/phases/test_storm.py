"""Threads, short-lived streams, captures and refusals at once, checked against a shadow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels.phases.modules import STUDY, with_fault_in_allocator
from tests.kernels.phases.native import native, ran

STEP = "p5_dropin"
SOURCES = ("HostileSource", "HostilePages", "HostileOrder")
"""Sources of the step: the first makes it p5_dropin, pages make it p6_mapped, streams that
wait for each other p7_ordered."""
SANITIZERS = {
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "thread": ("-fsanitize=thread",),
}


def storm(
    name: str,
    operations: int,
    *flags: str,
    source: str = SOURCES[0],
    folder: Path = STUDY.folder,
    limit_s: int = 300,
) -> str | None:
    """The fault that 8 threads found in `operations` operations, or an empty string."""
    flags = (f"-DSOURCE={source}", *flags)
    program = native(f"storm-{name}-{source}", "storm.cpp", *flags, variant=STEP, folder=folder)
    done = ran("timeout", str(limit_s), program, str(operations), "1", "8")
    return None if done.returncode == 0 else done.stdout + done.stderr or "a crash, or no end"


@pytest.mark.parametrize(
    "source",
    # test_mapped.py and test_ordered.py use the others without threads.
    [SOURCES[0], *(pytest.param(source, marks=pytest.mark.long) for source in SOURCES[1:])],
)
def test_nothing_goes_wrong_in_a_storm(source: str) -> None:
    assert storm("plain", 50_000, source=source) is None


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize(
    ("operations", "limit_s"),
    [
        pytest.param(50_000, 300, marks=pytest.mark.long),
        pytest.param(1_000_000, 3600, marks=pytest.mark.exhaustive),
    ],
)
def test_nothing_goes_wrong_under_a_sanitizer(
    operations: int, limit_s: int, sanitizer: str, source: str
) -> None:
    flags = SANITIZERS[sanitizer]
    assert storm(sanitizer, operations, *flags, source=source, limit_s=limit_s) is None


STILL_READ = "some that a stream still reads"
OF_A_GRAPH = "some of a captured graph"

FAULTS = {
    "users are forgotten": (
        *("device_memory.h", "if (!block->users.empty()) {", "if (false) {"),
        STILL_READ,
    ),
    "the event is recorded later": (
        *("stream_waits.h", "if (!queue.is_persistent || is_due) {", "if (is_due) {"),
        STILL_READ,
    ),
    "events are not asked": (
        *("stream_waits.h", "source.is_done(device, queue.batches.front().event)", "true"),
        STILL_READ,
    ),
    "one of several streams is enough": (
        *(
            "stream_waits.h",
            "if (--block->pending_events == 0) {",
            "--block->pending_events;\n    {",
        ),
        "",
    ),
    "an event becomes part of a graph": (
        *("stream_waits.h", "empty() && !is_captured(stream)", "empty()"),
        "captured event",
    ),
    "memory outlives its address": (
        *("heap.h", "    memory_.arena.table.erase(block);\n", ""),
        "",
    ),
    "a trie forgets its parents": (
        *("size_tries.h", "heir->child[side]->parent = heir;", ""),
        "",
    ),
    "graphs have no pool": (
        *("device_memory.h", "heaps_[pools_.pool_of(handle)]", "heaps_[kNoPool]"),
        OF_A_GRAPH,
    ),
    "the memory of graphs is returned": (
        *("device_memory.h", " && !pools_.is_held(id);", ";"),
        OF_A_GRAPH,
    ),
    "a segment that the driver refused is lost": (
        *("heap.h", "&& memory_.release(block->ptr)) {", "&& (memory_.release(block->ptr), 1)) {"),
        "expected all memory returned",
    ),
    "the driver is asked inside a capture": (
        *("device_memory.h", "if (memory_.captures == 0 && !waits_.is_empty()) {", "{"),
        "capturing",
    ),
    "threads share a default stream": (
        *("dropin.h", "streams_ != nullptr ? streams_->identity(stream) : stream", "stream"),
        "",
    ),
    "a stream that ends is not waited for": (
        *("device_memory.h", "    source.wait(memory_.arena.device, event);\n", ""),
        STILL_READ,
    ),
    "what was kept whole is not returned": (
        *("device_memory.h", "        heap.front.flush();\n", ""),
        "expected all memory returned",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_in_a_storm(tmp_path: Path, fault: str) -> None:
    name, old, new, expected = FAULTS[fault]
    changed = with_fault_in_allocator(tmp_path, name, old, new)
    found = storm(f"fault-{list(FAULTS).index(fault)}", 50_000, folder=changed, limit_s=20)
    assert found is not None
    assert expected in found
