"""The host code of launches on several GPUs, with a CUDA runtime that has none and does everything
late."""

from __future__ import annotations

import subprocess
from pathlib import Path

from analysis.toolchain.compile import defines
from tests.compiled import program, toolchain
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
