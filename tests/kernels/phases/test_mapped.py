"""Heaps over pages that are mapped where they are needed."""

from __future__ import annotations

from tests.kernels.phases.native import native, ran


def test_blocks_tile_what_is_mapped_and_all_of_it_goes_back() -> None:
    done = ran(native("mapped", "mapped.cpp", variant="p5_dropin"))
    assert done.returncode == 0, done.stdout + done.stderr
