"""Server and client under the compiler's sanitizers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from analysis.toolchain.libfabric import Libfabric
from tests.compiled import program
from tests.kernels.rdma_write.sessions import NAMES, STUDY

WATCHED = [
    *(("thread", name, "server") for name in NAMES),
    ("thread", "selective_completion", "profiled"),
    *(("address,undefined", name, "server") for name in ("lazy_progress", "selective_completion")),
    ("address,undefined", "single_thread", "profiled"),
]


HERE = Path(__file__).parent


def peer_program(name: str, sanitizer: str, libfabric: Libfabric) -> Path:
    """Program of one variant with a sanitizer."""
    sources = [STUDY.variant(name).path, HERE / "peer.cpp"]
    flags = ["-std=c++20", "-O1", f"-fsanitize={sanitizer}", *libfabric.compile_flags]
    path = f"-Wl,--disable-new-dtags,-rpath={libfabric.library.parent}"
    libraries = (str(libfabric.library), path)
    return program(f"rdma-{sanitizer}-{name}", sources, STUDY.folder, flags, *libraries)


@pytest.mark.long
@pytest.mark.parametrize(("sanitizer", "name", "role"), WATCHED)
def test_sanitizers_find_nothing(
    libfabric: Libfabric, name: str, sanitizer: str, role: str
) -> None:
    peer = peer_program(name, sanitizer, libfabric)
    environment = os.environ | {
        "TSAN_OPTIONS": f"suppressions={HERE / 'tsan.supp'}:exitcode=66",
        "ASAN_OPTIONS": "detect_leaks=1:exitcode=66",
        "LSAN_OPTIONS": f"suppressions={HERE / 'lsan.supp'}",
        "UBSAN_OPTIONS": "halt_on_error=1",
    }
    # Sanitizers fail under some randomisations of addresses.
    start = [shutil.which("setarch") or "setarch", "--addr-no-randomize", str(peer)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*start, role, "shm", "2"], env=environment, **pipes) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        client = subprocess.run(
            [*start, "client", "shm", "2", address],
            env=environment, timeout=60, check=False, **pipes,
        )  # fmt: skip
        _, stderr = server.communicate(timeout=60)
    assert client.returncode == 0, client.stderr
    assert server.returncode == 0, stderr
    assert re.search(r"posted \d+, finished \d+ of \d+ writes, .* Mpps", stderr)
    assert "Sanitizer" not in stderr + client.stderr
