"""tools/reach.cu without a GPU: its host code, and the whole program on a made-up GPU."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from analysis import ROOT
from tests.compiled import kept, program, run, toolchain

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
SOURCE = ROOT / "tools" / "reach.cu"
HERE = Path(__file__).parent


@cache
def host_program() -> Path:
    """The fit, the free memory and the order of reads, as reach_on_host.cpp explains."""
    source = HERE / "reach_on_host.cpp"
    flags = ["-std=c++17", "-O1", "-Wno-unknown-pragmas", *SANITIZERS]
    return program("reach_on_host", [source], HERE, flags)


def on_host(*arguments: object, text: str = "") -> list[float]:
    """Numbers that the host program prints."""
    command = [str(host_program()), *map(str, arguments)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def fitted(curve: Iterable[tuple[float, float]], link_s: float) -> list[float]:
    """Reach in bytes, seconds of a walk, those per doubling, and error of a curve of pools."""
    return on_host("fit", link_s, text="".join(f"{pool} {time}\n" for pool, time in curve))


@cache
def stubbed() -> Path:
    """The whole program, linked with stub_gpu.cpp instead of a CUDA runtime."""
    known = toolchain()
    stub = HERE / "stub_gpu.cpp"

    def make(folder: Path) -> None:
        compiled = str(folder / "stub.o")
        run(known.cxx, "-std=c++17", f"-isystem{known.include}", "-c", str(stub), "-o", compiled)
        nvcc = [str(known.nvcc), "-ccbin", known.cxx, "-arch=sm_90", "-cudart=none"]
        run(*nvcc, str(SOURCE), compiled, "-o", str(folder / "reach"))

    return kept("reach_stubbed", [SOURCE, stub], make) / "reach"


def on_made_up_gpu(*arguments: str, **gpu: float) -> subprocess.CompletedProcess[str]:
    """A run on the GPU that stub_gpu.cpp makes up from `gpu`."""
    given = os.environ | {name: str(value) for name, value in gpu.items()}
    command = [str(stubbed()), *arguments]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False)


def json_output(*arguments: str, **gpu: float) -> dict[str, Any]:
    """The object that such a run prints with --json."""
    done = on_made_up_gpu("--json", "--pool-gib", "2", *arguments, **gpu)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
