"""The host code of packing and sharing, with a CUDA runtime that does everything late."""

import shutil
import subprocess
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.measure.cpu import cores
from analysis.toolchain.compile import defines
from tests.compiled import QUICK, changed_kernels, host_flags, program
from tests.kernels.stubbed import YIELDING, runtime
from tests.repository import STUDIES

KERNELS = ROOT / "kernels"
POOL = STUDIES["pool_gather"]

Change = tuple[str, str, str]
# Room for three chunks, and for three pieces of 16 or of 8 rows.
RING: Change = ("pool_gather/packer.h", "kRingBytes = 32 << 20;", "kRingBytes = 40 << 10;")
PIECES: Change = ("pool_gather/request_packer.h", "= 32 << 20;", "= 32 << 10;")
MISSES: Change = ("hot_set/miss_packer.h", "kRingBytes = 32 << 20;", "kRingBytes = 16 << 10;")

PACKS = "      pack_chunk(gather, ring_slot(chunk), first, end);"
HAS_ARRIVED = "arrived_.load(std::memory_order_acquire) > chunk"
BEGUN_LATE: Change = (
    "pool_gather/packer.h",
    PACKS,
    f"while (gather.rows == 2048 && chunk % 8 == 1 && chunk < 100 && !({HAS_ARRIVED}))"
    f" _mm_pause();\n{PACKS}",
)
"""Workers begin some chunks only when the caller has packed them."""
SENDS = "      send_rows(gather, packed"
SENT_LATE: Change = (
    "pool_gather/packer.h",
    SENDS,
    f"      std::this_thread::sleep_for(std::chrono::microseconds(300));\n{SENDS}",
)
"""Packed rows are sent late, so that there is time to write over them."""
LATE_WORKERS = [RING, PIECES, MISSES, BEGUN_LATE]
"""Of requests and misses, the last change is no part: they share a program with what it is of."""


def ran(how: str, kernels: Path, *more: str) -> str:
    """What packing.cpp with the headers in `kernels`, compiled with the flags `more`, says is
    wrong."""
    sanitizer = [flag for flag in more if flag.startswith("-fsanitize=")]
    sources = [Path(__file__).with_name("packing.cpp"), runtime(*sanitizer)]
    flags = [*host_flags("-O1" if more else QUICK), *more, YIELDING, *defines(POOL.constants)]
    packing = program("packing", sources, kernels, flags, "-pthread")
    # A sanitizer's memory map does not go with every randomisation of addresses.
    command = [shutil.which("setarch") or "setarch", "--addr-no-randomize", str(packing), how]
    command += map(str, (3 * cores())[:3])  # two threads beside the caller
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    return f"{done.returncode}: {done.stdout}{done.stderr}" if done.returncode else ""


OTHER_WAYS = ("pack -DPATIENCE_US=0", "pack -DCOPIED_BY_STRING", "pack -DPAST_CACHES")


@pytest.mark.parametrize(
    "words",
    ["pack", "request", "tune", *(pytest.param(w, marks=pytest.mark.long) for w in OTHER_WAYS)],
)
def test_every_byte_arrives(words: str) -> None:
    how, *flags = words.split()
    assert ran(how, KERNELS, *flags) == ""


@pytest.mark.parametrize(
    ("how", "changes"),
    [
        *(pytest.param(how, LATE_WORKERS, id=how) for how in ("request", "miss", "pack")),
        pytest.param("pack", [RING, SENT_LATE], id="late-copies", marks=pytest.mark.long),
    ],
)
def test_rings_of_three_pieces_turn(tmp_path: Path, how: str, changes: list[Change]) -> None:
    assert ran(how, changed_kernels(tmp_path, *changes)) == ""


@pytest.mark.long
@pytest.mark.parametrize("how", ["pack", "request", "miss", "tune"])
def test_sanitizers_find_nothing_in_packing(tmp_path: Path, how: str) -> None:
    small = changed_kernels(tmp_path, RING, PIECES, MISSES)
    assert ran(how, small, "-fsanitize=thread", "-fno-sanitize-recover=all") == ""
