"""The host code of pinning, on a fake CUDA runtime that refuses what CUDA refuses."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np
import pytest

from tests.kernels.pinning.fake import (
    CHUNKED,
    HUGE_PAGE,
    PINNING,
    module,
    pinned_ranges,
    refuse_registration,
)

SIZE = 3 * HUGE_PAGE + 12_345
"""Three chunks of a huge page and a part."""
ONLY_ON_GPU = {"virtual_memory", "chunks_again", "small_chunks"}
ONLY_LONG = {"huge_pages", "untouched"}
"""Variants that are built for one test alone, and differ from others in one call."""
PINNING_VARIANTS = [
    pytest.param(name, marks=[pytest.mark.long] if name in ONLY_LONG else [])
    for name in PINNING.variant_names
    if name not in ONLY_ON_GPU
]


def memory_of(pinned: Any) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * SIZE).from_address(pinned.address))


@pytest.mark.parametrize("name", PINNING_VARIANTS)
def test_pinned_memory_is_written_and_unpinned(name: str) -> None:
    pinned = module(name).Pinned(SIZE, HUGE_PAGE, 3)
    assert pinned_ranges(name) == (4 if name in CHUNKED else 1)
    assert name == "host_alloc" or pinned.address % HUGE_PAGE == 0
    memory_of(pinned)[:] = 7
    begin, end = pinned.unpin()
    assert end >= begin and pinned_ranges(name) == 0
    dropped = module(name).Pinned(SIZE, HUGE_PAGE, 2)
    del dropped
    assert pinned_ranges(name) == 0


@pytest.mark.parametrize("name", CHUNKED)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_failed_registration_unpins_what_was_pinned(name: str, threads: int) -> None:
    refuse_registration(name, 2)
    try:
        with pytest.raises(RuntimeError, match="cudaHostRegister: out of memory"):
            module(name).Pinned(SIZE, HUGE_PAGE, threads)
        assert pinned_ranges(name) == 0
    finally:
        refuse_registration(name, -1)


def test_copies_are_split_at_borders() -> None:
    pinned, rng = module("chunks").Pinned(SIZE, HUGE_PAGE, 2), np.random.default_rng(0)
    memory = memory_of(pinned)
    ranges = [(0, SIZE), (0, HUGE_PAGE), (HUGE_PAGE - 1, 2), (HUGE_PAGE, HUGE_PAGE)]
    for offset, size in [*ranges, (5, 2 * HUGE_PAGE), (SIZE - 1, 1), (SIZE, 0)]:
        memory[:] = rng.integers(0, 256, SIZE, np.uint8)
        before, device = memory.copy(), np.zeros(size + 1, np.uint8)
        pinned.copy(device.ctypes.data, offset, size, True, 0)
        assert np.array_equal(device[:-1], memory[offset : offset + size]) and device[-1] == 0
        device[:] = rng.integers(0, 256, size + 1, np.uint8)
        pinned.copy(device.ctypes.data, offset, size, False, 0)
        before[offset : offset + size] = device[:-1]
        assert np.array_equal(memory, before)


@pytest.mark.parametrize("calls", ["copy", "malloc", "info"])
def test_calls_of_the_neighbour_follow_each_other(calls: str) -> None:
    times = np.empty((0, 2))
    while len(times) < 2:
        neighbour = module("chunks").Neighbour(calls)
        time.sleep(0.01)
        times = neighbour.stop()
    assert (times[:, 1] >= times[:, 0]).all() and (times[1:, 0] >= times[:-1, 1]).all()
    with pytest.raises(ValueError, match="calls: expected copy, launch, malloc or info, got sing"):
        module("chunks").Neighbour("sing")
