"""Flushes of host memory from the CPU's caches, and a core's clock."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from analysis.base.errors import HotpathError
from analysis.measure import cpu_cache
from analysis.measure.cpu_cache import core_clock_hz, flush, flush_rows
from tests.compiled import use_built_library

CHUNK = cpu_cache._CHUNK


def test_every_row_is_handed_over_once_and_keeps_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_built_library(monkeypatch)
    pieces: list[int] = []

    class Library:
        @staticmethod
        def flush_pieces(base: int, indices: int, count: int, stride: int, size: int) -> None:
            assert (stride, size) == (100, 40)
            found = (ctypes.c_int64 * count).from_address(indices)
            pieces.extend((base + index * stride) for index in found)

    for size in (0, 1, 63, 64, 65, 4096, CHUNK, 2 * CHUNK + 1):
        whole = np.random.default_rng(size).integers(0, 256, size + 7, np.uint8)
        part = whole[5 : 5 + size]  # begins and ends within a line
        incremented = part + np.uint8(1)
        part += np.uint8(1)
        flush(part)
        assert np.array_equal(part, incremented)
    monkeypatch.setattr(cpu_cache, "_CHUNK", 64)  # several threads
    table = np.random.default_rng(1).integers(0, 256, (50, 100), np.uint8)
    monkeypatch.setattr(cpu_cache, "_library", Library)
    flush_rows(table[:, :40], np.random.default_rng(2).permutation(50))
    assert sorted(pieces) == [table.ctypes.data + 100 * row for row in range(50)]


def test_the_clock_of_a_core_is_measured_and_a_missing_library_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_built_library(monkeypatch)
    clock = core_clock_hz()
    assert clock is not None and 5e8 < clock < 1e10
    monkeypatch.setattr(cpu_cache, "LIBRARY", tmp_path / "cpu_cache.so")
    assert core_clock_hz() is None
    with pytest.raises(HotpathError, match=r"cpu_cache\.so: not built; run: snakemake"):
        flush(np.zeros(1))
