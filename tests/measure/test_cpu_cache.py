"""Flushes of host memory from the CPU's caches, a core's clock, and what is read ahead."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.measure import cpu_cache, read_ahead
from analysis.measure.cpu_cache import core_clock_hz, flush, flush_rows
from analysis.study import discover
from tests.compiled import use_built_library

CHUNK = cpu_cache._CHUNK


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    use_built_library(monkeypatch)


def test_every_row_is_handed_over_once_and_keeps_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
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
    expected, rows = table.copy(), np.random.default_rng(2).permutation(50)
    flush_rows(table[:, :40], rows)
    assert np.array_equal(table, expected)
    monkeypatch.setattr(cpu_cache, "_library", Library)
    flush_rows(table[:, :40], rows)
    assert sorted(pieces) == [table.ctypes.data + 100 * row for row in range(50)]


def test_the_clock_of_a_core_is_measured_and_a_missing_library_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = core_clock_hz()
    assert clock is not None and 5e8 < clock < 1e10
    monkeypatch.setattr(cpu_cache, "LIBRARY", tmp_path / "cpu_cache.so")
    assert core_clock_hz() is None
    with pytest.raises(HotpathError, match=r"cpu_cache\.so: not built; run: snakemake"):
        flush(np.zeros(1))


def test_memory_is_touched_and_freed() -> None:
    program = (
        "import re; from pathlib import Path; from analysis.measure import read_ahead\n"
        "read_ahead.touch_memory(2**28)\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(*re.findall(r'Vm(?:HWM|RSS):\\s+(\\d+) kB', status))"
    )
    printed = subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True)
    peak_kb, after_kb = map(int, printed.split())
    assert abs((peak_kb - after_kb) * 1024 - 2**28) < 2**25
    largest = [study.constants.get("largest_pool_mib", 0) for study in discover().values()]
    assert max(largest) * 2**20 == read_ahead.POOL_BYTES


def test_memory_of_the_gpu_that_is_left_at_the_end_of_a_process_is_no_error() -> None:
    program = (
        "from analysis.measure import memory\n"
        "memory.kept = object.__new__(memory.DeviceArray)\n"
        "memory.kept.pointer, memory.kept.itself = 1, memory.kept\n"
        "memory.__dict__.pop('kept')\n"
        "memory.last = object.__new__(memory.DeviceArray)\n"
        "memory.last.pointer = 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
