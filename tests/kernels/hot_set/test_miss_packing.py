"""The threads that pack missing rows, with a CUDA runtime that has no GPU, and their share."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from analysis import ROOT
from tests.compiled import program, toolchain, with_fault
from tests.kernels.pool_gather.late_runtime import late_runtime

HERE = Path(__file__).parent
HOT_SET, POOL_GATHER = ROOT / "kernels" / "hot_set", ROOT / "kernels" / "pool_gather"
OF_POOL_GATHER = ROOT / "tests" / "kernels" / "pool_gather"

SMALL_RING = "miss_packer.h", "kRingBytes = 32 << 20;", "kRingBytes = 16 << 10;"
"""Room for three pieces of 8 rows of 656 bytes."""


def changed(tmp_path: Path, *changes: tuple[str, str, str]) -> Path:
    """A copy of the study with these changes, each a file, a text in it and another one for it."""
    folder = HOT_SET
    for number, change in enumerate(changes):
        copy = tmp_path / str(number) / HOT_SET.name
        folder = with_fault(folder, copy, *change)
        (copy.parent / POOL_GATHER.name).symlink_to(POOL_GATHER)
    return folder


def ran(
    folder: Path, *flags: str, row_bytes: int = 656, limit_s: int = 300
) -> subprocess.CompletedProcess[str]:
    """Run miss_packing.cpp for rows of `row_bytes`."""
    more = [f"-isystem{toolchain().include}", f"-include{OF_POOL_GATHER / 'yielding.h'}"]
    settings = ["-std=c++17", "-pthread", "-O1", f"-DROW_BYTES={row_bytes}", *more, *flags]
    sources = [HERE / "miss_packing.cpp", late_runtime(*(f for f in flags if "-fsanitize=" in f))]
    packing = program("miss-packing", sources, folder, settings)
    # A sanitizer's memory map does not go with every randomisation of addresses.
    setarch = shutil.which("setarch") or "setarch"
    command = [setarch, "--addr-no-randomize", str(packing)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)


# The ring with room for three pieces has rows of 656 bytes, too.
@pytest.mark.long
@pytest.mark.parametrize("row_bytes", [512, 656])
def test_every_requested_row_is_packed(row_bytes: int) -> None:
    done = ran(HOT_SET, row_bytes=row_bytes)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_ring_with_room_for_three_pieces_turns(tmp_path: Path) -> None:
    done = ran(changed(tmp_path, SMALL_RING))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_chosen_share_has_properties() -> None:
    flags = ["-std=c++17", "-O1", "-DTOKEN_BYTES=656", f"-isystem{toolchain().include}"]
    model = program("share-model", [HERE / "share_model.cpp"], HOT_SET, flags)
    done = subprocess.run([str(model)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def meeting(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run meeting.cpp, which ends within seconds."""
    cuda = toolchain().include
    flags = ["-std=c++17", "-pthread", "-O1", f"-I{HERE}", f"-isystem{cuda}"]
    flags += [f"-isystem{cuda / 'cccl'}", "-Wno-unknown-pragmas", "-Wno-attributes"]
    met = program("meeting", [HERE / "meeting.cpp"], folder, flags)
    return subprocess.run([str(met)], capture_output=True, text=True, check=False, timeout=60)


def test_a_kernel_ends_if_threads_post_their_claims_out_of_order(tmp_path: Path) -> None:
    done = meeting(HOT_SET)
    assert done.returncode == 0, done.stdout + done.stderr
    fault = "miss_fetch.h", " && posted_limit < limit", ""
    assert "has missed that both sides have met" in meeting(changed(tmp_path, fault)).stdout


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_sanitizers_find_nothing(tmp_path: Path, sanitizer: str) -> None:
    flags = f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"
    done = ran(changed(tmp_path, SMALL_RING), *flags)
    assert done.returncode == 0, done.stdout + done.stderr
