"""Heaps over pages that are mapped where they are needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels.phases.modules import with_fault_in_allocator
from tests.kernels.phases.native import native, ran

FAULTS = {
    "the end is lost where it is cut": ("if (block == last_) {", "if (false) {"),
    "what was unmapped is handed out": ("end->size -= mapped_ - left;", ""),
    "what is used is unmapped": (
        "const size_t keep = size_t(last_->ptr - range_);",
        "size_t keep{};",
    ),
    "addresses are never given back": (
        "memory_.mapping->drop(memory_.arena.device, range_);",
        "",
    ),
    "what is free at the end is not used": ("is_free(last_) ? last_->size : 0", "0"),
    "the end is found by its size": ("block == last_ && mapped_ > first_bytes()", "false"),
    "the first pages are as few as a request needs": ("std::max(bytes, first_bytes())", "bytes"),
}


def test_blocks_tile_what_is_mapped_and_all_of_it_goes_back() -> None:
    done = ran(native("mapped", "mapped.cpp", variant="p5_dropin"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str, tmp_path: Path) -> None:
    changed = with_fault_in_allocator(tmp_path, "heap.h", *FAULTS[fault])
    name = f"mapped-{list(FAULTS).index(fault)}"
    done = ran(native(name, "mapped.cpp", variant="p5_dropin", folder=changed))
    assert done.returncode == 1, done.stdout + done.stderr
