"""The host code of launches on several GPUs, with a CUDA runtime that has none and does everything
late."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from analysis.toolchain.compile import defines
from tests.compiled import program, toolchain, with_fault
from tests.kernels.peers.fake import PEERS

HERE = Path(__file__).parent


def ran(folder: Path) -> subprocess.CompletedProcess[str]:
    include = [f"-isystem{toolchain().include}", f"-I{PEERS.folder}"]
    flags = ["-std=c++17", *include, *defines(PEERS.constants)]
    sources = [HERE / "working_together.cpp", HERE / "several_gpus.cpp", folder / "copy_engine.cpp"]
    together = program("peers-together", sources, folder, flags)
    return subprocess.run([together], capture_output=True, text=True, check=False, timeout=60)


def test_gpus_work_together() -> None:
    done = ran(PEERS.folder)
    assert done.returncode == 0, done.stdout + done.stderr


FAULTS = {
    "others do not wait for the caller": (
        'check(cudaStreamWaitEvent(lane.stream.get(), begun_.get(), 0), "begun");',
        "the stream is done before all shares are",
    ),
    "the caller does not wait for others": (
        "    join(caller, false);\n",
        "the stream is done before all shares are",
    ),
    "the current GPU is left": (
        " cudaSetDevice(before_); ",
        "launch: refused",
    ),
    "a stream of another GPU": (
        "        const OnGpu there(lane.part.share.gpu);\n",
        "launch: refused",
    ),
    "streams and events of the first GPU": (
        "    const OnGpu there(part.share.gpu);\n",
        "launch: refused",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_it_is_found(tmp_path: Path, fault: str) -> None:
    right, says = FAULTS[fault]
    file = "on_gpu.h" if "before_" in right else "together.h"
    done = ran(with_fault(PEERS.folder, tmp_path / "copy", file, right, ""))
    assert done.returncode != 0
    assert says in done.stdout + done.stderr
