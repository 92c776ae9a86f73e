"""Streams that are told to wait for others where much of the memory waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.allocator.modules import STUDY
from tests.allocator.native import native, ran
from tests.compiled import with_fault

STILL_READ = "some that a stream still reads"
ORDER = "-DSOURCE=HostileOrder"
FAULTS = {
    "no stream ever waits": (
        "if (memory_.order == nullptr || ",
        "if (memory_.order != nullptr || ",
        "expected 64 MiB, got 128 MiB",
    ),
    "streams always wait": (
        "bytes_ < memory_.arena.reserved() / kMuch",
        "false",
        "expected 544 MiB, got 528 MiB",
    ),
    "the stream is not told to wait": (
        "if (own != point.blocks.end()) {",
        "if (false) {",
        STILL_READ,
    ),
    "memory behind later points is handed out": (
        "std::for_each(line.points.begin(), std::next(first),",
        "std::for_each(line.points.begin(), line.points.end(),",
        "expected a wait for the first use",
    ),
    "the stream waits for the last point alone": (
        "point.event);\n    }",
        "lines_.begin()->second.points.back().event);\n    }",
        "expected a wait for the first use",
    ),
    "memory of other streams is handed out": (
        "return &block->side->heap != &heap;",
        "return false;",
        STILL_READ,
    ),
    "one of two users is enough": (
        "if (--block->events == 0) {",
        "--block->events;\n    {",
        STILL_READ,
    ),
    "a captured stream waits": (
        "reserved() / kMuch ||\n        is_captured(stream)) {",
        "reserved() / kMuch) {",
        "dependency created on uncaptured work",
    ),
}


def test_what_waits_is_used_again_behind_those_that_use_it() -> None:
    done = ran(native("ordered", "ordered.cpp", ORDER, variant="p5_dropin"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str, tmp_path: Path) -> None:
    right, wrong, told = FAULTS[fault]
    changed = with_fault(STUDY.folder, tmp_path / "allocator", "stream_waits.h", right, wrong)
    name = f"ordered-{list(FAULTS).index(fault)}"
    done = ran(native(name, "ordered.cpp", ORDER, variant="p5_dropin", folder=changed))
    assert done.returncode == 1, done.stdout + done.stderr
    assert told in done.stdout
