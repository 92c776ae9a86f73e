"""Flushes of host memory from the CPU's caches, which keep its bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.measure import cpu_cache
from analysis.measure.cpu_cache import core_clock_hz, flush, flush_rows
from tests.compiled import program

SOURCE = ROOT / "analysis/measure/cpu_cache.cpp"
CHUNK = cpu_cache._CHUNK


@pytest.fixture(scope="module")
def built() -> Path:
    flags = ("-std=c++20", "-O2", "-Werror", "-fPIC", "-shared")
    return program("cpu_cache.so", [SOURCE], SOURCE.parent, flags)


@pytest.fixture(autouse=True)
def library(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cpu_cache, "LIBRARY", built)
    load = cpu_cache._library
    load.cache_clear()
    yield
    load.cache_clear()


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 4096, CHUNK, 2 * CHUNK + 1])
def test_flush_keeps_the_bytes(size: int) -> None:
    whole = np.random.default_rng(size).integers(0, 256, size + 7, np.uint8)
    part = whole[5 : 5 + size]  # begins and ends within a line
    expected = part + np.uint8(1)
    part += np.uint8(1)
    flush(part)
    assert np.array_equal(part, expected)


@pytest.mark.parametrize("rows", [[], [3, 0, 3], list(range(1000))])
def test_rows_are_flushed_wherever_they_lie(
    rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_cache, "_CHUNK", 64 * 40)  # several threads
    table = np.random.default_rng(1).integers(0, 256, (1000, 100), np.uint8)
    expected = table.copy()
    flush_rows(table[:, :40], np.array(rows, np.int32))
    assert np.array_equal(table, expected)


def test_every_row_is_handed_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []

    class Library:
        @staticmethod
        def flush_pieces(base: int, indices: int, count: int, stride: int, size: int) -> None:
            assert (stride, size) == (100, 40)
            found = (ctypes.c_int64 * count).from_address(indices)
            pieces.extend((base + index * stride) for index in found)

    monkeypatch.setattr(cpu_cache, "_CHUNK", 64)
    monkeypatch.setattr(cpu_cache, "_library", Library)
    table = np.zeros((50, 100), np.uint8)
    rows = np.random.default_rng(2).permutation(50)
    flush_rows(table[:, :40], rows)
    assert sorted(pieces) == [table.ctypes.data + 100 * row for row in range(50)]


def test_the_clock_of_a_core_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = core_clock_hz()
    assert clock is not None
    assert 5e8 < clock < 1e10
    monkeypatch.setattr(cpu_cache, "LIBRARY", tmp_path / "cpu_cache.so")
    assert core_clock_hz() is None


def test_missing_module_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_cache, "LIBRARY", tmp_path / "cpu_cache.so")
    with pytest.raises(HotpathError, match=r"cpu_cache\.so: not built; run: snakemake"):
        flush(np.zeros(1))
