"""The host code of packing and sharing, with a CUDA runtime that does everything late."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.toolchain.compile import OPTIMISATION, defines
from analysis.toolchain.modules import COMPILED_NAME
from kernels.common import shared_pool
from tests.compiled import QUICK, bindings_object, object_file, program, toolchain, with_fault
from tests.kernels.pool_gather.fake import (
    DRAWS,
    POOL,
    case,
    fake_workload,
    python_module,
)
from tests.kernels.pool_gather.late_runtime import late_runtime

HERE = Path(__file__).parent
STREAM = 64
"""Address of a stream, which this runtime only tells apart from others."""


def flags(*more: str) -> list[str]:
    included = [f"-isystem{toolchain().include}", f"-include{HERE / 'yielding.h'}"]
    return ["-std=c++17", "-pthread", *more, *included, *defines(POOL.constants)]


def packing_program(folder: Path, *more: str) -> Path:
    sanitizer = [flag for flag in more if flag.startswith("-fsanitize=")]
    sources = [HERE / "packing.cpp", late_runtime(*sanitizer)]
    return program("pool-packing", sources, folder, flags("-O1", *more))


def ran(folder: Path, *more: str, what: str = "") -> subprocess.CompletedProcess[str]:
    """Run packing.cpp, compiled with the flags `more`, with the arguments `what`."""
    packing = packing_program(folder, *more)
    # A sanitizer's memory map does not go with every randomisation of addresses.
    setarch = shutil.which("setarch") or "setarch"
    command = [setarch, "--addr-no-randomize", str(packing), *what.split()]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_every_byte_is_packed_and_shared() -> None:
    done = ran(POOL.folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_divisions_are_tried_and_the_fastest_is_kept() -> None:
    done = ran(POOL.folder, what="tune")
    assert done.returncode == 0, done.stdout + done.stderr


RING = "packer.h", "kRingBytes = 32 << 20;", "kRingBytes = 40 << 10;"


# Room for three pieces of 16 rows.
REQUEST_RING = "request_packer.h", "kRingBytes = 32 << 20;", "kRingBytes = 32 << 10;"


@pytest.mark.long  # they turn while the caller packs what is late, too
def test_rings_with_room_for_three_chunks_and_for_three_pieces_turn(tmp_path: Path) -> None:
    small = with_fault(POOL.folder, tmp_path / "small", *RING)
    done = ran(with_fault(small, tmp_path / "pool_gather", *REQUEST_RING))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_pieces_wait_for_room_in_the_ring(tmp_path: Path) -> None:
    small = with_fault(POOL.folder, tmp_path / "small", *REQUEST_RING)
    done = ran(
        with_fault(
            small, tmp_path / "pool_gather", "request_packer.h", "(before < 0 ||", "(true ||"
        )
    )
    assert done.returncode != 0
    assert "differs" in done.stdout


def sent_late(folder: Path, copy: Path) -> Path:
    """A copy of the study in which packed rows are sent late, so that there is time to write over
    them."""
    sends = "      send_rows(gather, packed"
    waits = "      std::this_thread::sleep_for(std::chrono::microseconds(300));\n"
    return with_fault(folder, copy, "packer.h", sends, waits + sends)


def test_chunks_wait_for_room_in_the_ring(tmp_path: Path) -> None:
    small = with_fault(POOL.folder, tmp_path / "small", *RING)
    slow = sent_late(small, tmp_path / "slow")
    waits = "chunk - ring_chunks_ >= arrived_.load(std::memory_order_acquire)"
    done = ran(with_fault(slow, tmp_path / "pool_gather", "packer.h", waits, "false"))
    assert done.returncode != 0
    assert "differs" in done.stdout


def late(folder: Path, copy: Path, until: str) -> Path:
    """A copy of the study in which workers begin some chunks only when `until` holds."""
    packs = "      pack_chunk(gather, ring_slot(chunk), first, end);"
    waits = f"""
      while (gather.rows == 2048 && chunk % 8 == 1 && chunk < 100 && !({until})) {{
        _mm_pause();
      }}
"""
    return with_fault(folder, copy, "packer.h", packs, waits + packs)


def test_the_caller_packs_what_is_late_while_small_rings_turn(tmp_path: Path) -> None:
    small = with_fault(POOL.folder, tmp_path / "small", *RING)
    smaller = with_fault(small, tmp_path / "smaller", *REQUEST_RING)
    has_arrived = "arrived_.load(std::memory_order_acquire) > chunk"
    done = ran(late(smaller, tmp_path / "pool_gather", has_arrived))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_what_a_late_worker_still_writes_to_is_left_alone(tmp_path: Path) -> None:
    small = with_fault(POOL.folder, tmp_path / "small", *RING)
    unheld = with_fault(
        small, tmp_path / "unheld", "packer.h", "chunk >= ring_chunks_ &&", "chunk < 0 &&"
    )
    slow = sent_late(unheld, tmp_path / "slow")
    done = ran(late(slow, tmp_path / "pool_gather", "is_packed(chunk + ring_chunks_)"))
    assert done.returncode != 0
    assert "differs" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("flag", ["-DPATIENCE_US=0", "-DCOPIED_BY_STRING"])
def test_every_byte_is_packed_by_the_caller_and_by_strings(flag: str) -> None:
    done = ran(POOL.folder, flag)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_the_compiler_keeps_what_only_moves_cache_lines() -> None:
    packing = object_file(HERE / "packing.cpp", POOL.folder, flags(OPTIMISATION))
    code = subprocess.check_output(["objdump", "-d", str(packing)], text=True)
    assert "prefetchw" in code
    assert "cldemote" in code
    assert "prefetcht2" in code


@pytest.mark.long
def test_every_byte_is_packed_past_the_caches() -> None:
    done = ran(POOL.folder, "-DPAST_CACHES")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("what", ["", "tune"])
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_sanitizers_find_nothing(tmp_path: Path, sanitizer: str, what: str) -> None:
    small = with_fault(POOL.folder, tmp_path / "small", *RING)
    folder = with_fault(small, tmp_path / "pool_gather", *REQUEST_RING)
    done = ran(folder, f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", what=what)
    assert done.returncode == 0, done.stdout + done.stderr


def stubbed(name: str) -> Any:
    """The variant, linked with that runtime; `synchronize` waits for the default stream."""
    variant = POOL.variant(name)
    sources = late_runtime(), bindings_object(POOL, QUICK), variant.path
    settings = flags("-fPIC", "-shared", *variant.flags)
    out = program(f"{name}.so", sources, POOL.folder, settings)
    spec = importlib.util.spec_from_file_location(f"{out}.{COMPILED_NAME}", out)
    assert spec and spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.synchronize = ctypes.CDLL(str(out)).cudaStreamSynchronize
    return module


@pytest.mark.parametrize(
    "name",
    [
        *("packed_by_cpu", "ceiling_copy_engine"),
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("packed_past_caches", "packed_by_2")
        ),
    ],
)
def test_host_variants_gather_every_set(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(shared_pool, "cores", lambda: [0, 1, 0])
    monkeypatch.setattr(DRAWS, "MIN_ROWS_OF_SETS", 1)  # one row would take a million sets
    workload = fake_workload(monkeypatch)
    module = stubbed(name)
    for rows in (1, 300):
        operation = workload.prepare(case(rows)).bind(POOL.variant(name), module)
        has_threads = POOL.variant(name).host_work
        assert operation._bound.flush(0) == has_threads
        for _ in range(3):
            operation.poison()
            operation.launch(0)
            module.synchronize(None)
            assert operation.check() is None
            if has_threads:
                operation.settle()


def test_the_clock_of_bindings_flushes_launches_and_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_pool, "cores", lambda: [0, 1, 0])
    name = "ceiling_copy_engine"
    operation = fake_workload(monkeypatch).prepare(case()).bind(POOL.variant(name), stubbed(name))
    l2 = np.ones(4096, np.uint8)
    for size in (0, 100):
        operation.poison()
        submit_s, host_s = operation.launcher.time_launch(STREAM, l2.ctypes.data, size)
        assert 0 < submit_s < host_s < 1
        assert np.count_nonzero(l2 == 0) == size
        assert operation.check() is None
    operation.launcher.time_launch(0, l2.ctypes.data, l2.nbytes)
    assert np.count_nonzero(l2 == 0) == size, "a null stream is work of the CPU alone"
    assert operation.check() is not None, "nothing waits for a null stream"


def test_the_cpu_needs_a_core_beside_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_pool, "cores", lambda: [0])
    inputs = fake_workload(monkeypatch).prepare(case())
    with pytest.raises(Skip, match="there is only one"):
        inputs.bind(POOL.variant("packed_by_cpu"), python_module())
    inputs.bind(POOL.variant("loads_first"), python_module())
    with pytest.raises(ValueError, match="cpus: expected at least 2, got 1"):
        arguments = {
            "pool": inputs._table.slots,
            "dst": inputs._dst,
            "pairs": inputs._drawn.pairs,
            "sm_launches": inputs._sm_launches,
            "scales": None,
            "current": inputs._drawn.cursor,
        }
        stubbed("packed_by_cpu").bind(**arguments, cpus=[0])
