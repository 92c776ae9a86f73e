"""The host code of packing and sharing, with a CUDA runtime that does everything late."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from analysis import ROOT
from analysis.toolchain.compile import OPTIMISATION, defines
from kernels.common import shared_pool
from tests.compiled import changed_kernels, object_file, program, toolchain
from tests.conformance.emulated import bound, draw_few
from tests.kernels.stubbed import LATE, YIELDING, runtime, stubbed
from tests.repository import STUDIES

SOURCE = Path(__file__).with_name("packing.cpp")
KERNELS = ROOT / "kernels"
POOL = STUDIES["pool_gather"]

Change = tuple[str, str, str]
# Room for three chunks, and for three pieces of 16 or of 8 rows.
RING: Change = ("pool_gather/packer.h", "kRingBytes = 32 << 20;", "kRingBytes = 40 << 10;")
PIECES: Change = ("pool_gather/request_packer.h", "= 32 << 20;", "= 32 << 10;")
MISSES: Change = ("hot_set/miss_packer.h", "kRingBytes = 32 << 20;", "kRingBytes = 16 << 10;")

SENDS = "      send_rows(gather, packed"
SENT_LATE: Change = (
    "pool_gather/packer.h",
    SENDS,
    f"      std::this_thread::sleep_for(std::chrono::microseconds(300));\n{SENDS}",
)
"""Packed rows are sent late, so that there is time to write over them."""


def begun_late(until: str) -> Change:
    """Workers begin some chunks only when `until` holds."""
    packs = "      pack_chunk(gather, ring_slot(chunk), first, end);"
    late = f"gather.rows == 2048 && chunk % 8 == 1 && chunk < 100 && !({until})"
    return "pool_gather/packer.h", packs, f"      while ({late}) {{\n_mm_pause();\n}}\n{packs}"


def flags(*more: str) -> list[str]:
    included = [f"-isystem{toolchain().include}", YIELDING]
    return ["-std=c++17", "-pthread", *more, *included, *defines(POOL.constants)]


def ran(how: str, kernels: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run packing.cpp with the headers in `kernels`, compiled with the flags `more`."""
    sanitizer = [flag for flag in more if flag.startswith("-fsanitize=")]
    packing = program("packing", [SOURCE, runtime(LATE, *sanitizer)], kernels, flags("-O1", *more))
    # A sanitizer's memory map does not go with every randomisation of addresses.
    command = [shutil.which("setarch") or "setarch", "--addr-no-randomize", str(packing), how]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def expect_right(how: str, kernels: Path, *more: str) -> None:
    done = ran(how, kernels, *more)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("how", ["pack", "request", "tune"])
def test_every_byte_arrives(how: str) -> None:
    expect_right(how, KERNELS)


@pytest.mark.parametrize("how", ["request", "miss"])
def test_rings_with_room_for_three_pieces_turn(tmp_path: Path, how: str) -> None:
    expect_right(how, changed_kernels(tmp_path, PIECES, MISSES))


def test_the_caller_packs_what_is_late_while_a_small_ring_turns(tmp_path: Path) -> None:
    has_arrived = "arrived_.load(std::memory_order_acquire) > chunk"
    expect_right("pack", changed_kernels(tmp_path, RING, begun_late(has_arrived)))


FAULTS: dict[str, tuple[Change, ...]] = {
    "chunks do not wait for room in the ring": (
        ("pool_gather/packer.h", "chunk - ring_chunks_ >= arrived_", "chunk < 0 && 0 < arrived_"),
    ),
    "the slot of a late worker is used": (
        ("pool_gather/packer.h", "chunk >= ring_chunks_ &&", "chunk < 0 &&"),
        begun_late("is_packed(chunk + ring_chunks_)"),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_the_bytes_show_what_writes_over_packed_rows(tmp_path: Path, fault: str) -> None:
    done = ran("pack", changed_kernels(tmp_path, RING, SENT_LATE, *FAULTS[fault]))
    assert done.returncode != 0
    assert "differs" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("flag", ["-DPATIENCE_US=0", "-DCOPIED_BY_STRING", "-DPAST_CACHES"])
def test_every_byte_is_packed_in_other_ways(flag: str) -> None:
    expect_right("pack", KERNELS, flag)


@pytest.mark.long
@pytest.mark.parametrize("how", ["pack", "request", "miss", "tune"])
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_sanitizers_find_nothing(tmp_path: Path, sanitizer: str, how: str) -> None:
    small = changed_kernels(tmp_path, RING, PIECES, MISSES)
    expect_right(how, small, f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all")


@pytest.mark.long
def test_the_compiler_keeps_what_only_moves_cache_lines() -> None:
    packing = object_file(SOURCE, KERNELS, flags(OPTIMISATION))
    code = subprocess.check_output(["objdump", "-d", str(packing)], text=True)
    assert all(word in code for word in ("prefetchw", "cldemote", "prefetcht2"))


@pytest.mark.usefixtures("fake")
def test_the_clock_of_bindings_flushes_launches_and_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    draw_few(monkeypatch)
    monkeypatch.setattr(shared_pool, "cores", lambda: [0, 1, 0])
    name, stream = "ceiling_copy_engine", 64  # an address, which this runtime only tells apart
    operation = bound("pool_gather", name, module=stubbed(POOL, name, LATE))
    l2 = np.ones(4096, np.uint8)
    for size in (0, 100):
        operation.poison()
        submit_s, host_s = operation.launcher.time_launch(stream, l2.ctypes.data, size)
        assert 0 < submit_s < host_s < 1
        assert np.count_nonzero(l2 == 0) == size
        assert operation.check() is None
    operation.launcher.time_launch(0, l2.ctypes.data, l2.nbytes)
    assert np.count_nonzero(l2 == 0) == size, "a null stream is work of the CPU alone"
    assert operation.check() is not None, "nothing waits for a null stream"
