"""Server and client under the sanitizers of the compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis import ROOT
from analysis.toolchain.compilers import Toolchain
from tests.rdma_write.sessions import NAMES, STUDY

WATCHED = [
    *(("thread", name, "server") for name in NAMES),
    ("thread", "selective_completion", "profiled"),
    *(("address,undefined", name, "server") for name in ("lazy_progress", "selective_completion")),
    ("address,undefined", "single_thread", "profiled"),
]


@pytest.fixture(scope="module")
def peer_program(
    toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], Path]:
    """Builds tests/data/rdma_peer.cpp with a sanitizer and a variant."""
    folder = tmp_path_factory.mktemp("sanitized")
    assert toolchain.libfabric is not None
    library = toolchain.libfabric.library
    flags = ["-std=c++20", "-O1", "-g", f"-I{STUDY.folder}", *toolchain.libfabric.compile_flags]

    def compiled(source: Path, sanitizer: str) -> str:
        out = folder / f"{sanitizer}-{source.stem}.o"
        if not out.exists():
            command = [toolchain.cxx, *flags, f"-fsanitize={sanitizer}", "-c", str(source)]
            subprocess.run([*command, "-o", str(out)], check=True)
        return str(out)

    def linked(name: str, sanitizer: str) -> Path:
        out = folder / f"{sanitizer}-{name}"
        sources = (STUDY.variant(name).path, ROOT / "tests" / "data" / "rdma_peer.cpp")
        objects = [compiled(source, sanitizer) for source in sources]
        path = f"-Wl,--disable-new-dtags,-rpath={library.parent}"
        command = [toolchain.cxx, f"-fsanitize={sanitizer}", *objects, str(library), path]
        subprocess.run([*command, "-o", str(out)], check=True)
        return out

    return linked


@pytest.mark.parametrize(("sanitizer", "name", "role"), WATCHED)
def test_sanitizers_find_nothing(
    peer_program: Callable[[str, str], Path], name: str, sanitizer: str, role: str
) -> None:
    program = peer_program(name, sanitizer)
    environment = os.environ | {
        "TSAN_OPTIONS": f"suppressions={ROOT / 'tests' / 'data' / 'tsan.supp'}:exitcode=66",
        "ASAN_OPTIONS": "detect_leaks=1:exitcode=66",
        "LSAN_OPTIONS": f"suppressions={ROOT / 'tests' / 'data' / 'lsan.supp'}",
        "UBSAN_OPTIONS": "halt_on_error=1",
    }
    # A sanitizer's memory map does not go with every randomisation of addresses.
    start = [shutil.which("setarch") or "setarch", "--addr-no-randomize", str(program)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*start, role, "shm", "2"], env=environment, **pipes) as server:
        address = server.stdout.readline().strip()
        client = subprocess.run(
            [*start, "client", "shm", "2", address],
            env=environment, timeout=60, check=False, **pipes,
        )  # fmt: skip
        _, said = server.communicate(timeout=60)
    assert client.returncode == 0, client.stderr
    assert server.returncode == 0, said
    assert re.search(r"posted \d+, finished \d+ of \d+ writes, .* Mpps", said)
    assert "Sanitizer" not in said + client.stderr
