"""What tests of the RDMA writes share: built variants, and processes that make peers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.toolchain.compile import compile_bindings, compile_module
from analysis.toolchain.compilers import Toolchain, find_toolchain
from analysis.toolchain.libfabric import MISSING
from tests.rdma_write.sessions import NAMES, PEERS, STUDY


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    found = find_toolchain()
    if found.libfabric is None:
        pytest.skip(MISSING)
    return found


@pytest.fixture(scope="session")
def build(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles a variant, or another source as if it were one."""
    folder = tmp_path_factory.mktemp("modules")
    bindings = folder / "bindings.o"
    compile_bindings(STUDY, toolchain, bindings)

    def compiled(name: str, source: str | None = None) -> Path:
        out = folder / f"{name}.so"
        if out.exists():
            return out
        variant = STUDY.variant("pooled_contexts" if source else name)
        if source:
            path = folder / f"{name}.cpp"
            path.write_text(source)
            headers = (f"-I{STUDY.folder}",)
            variant = replace(variant, name=name, path=path, flags=(*variant.flags, *headers))
        compile_module(STUDY, variant, toolchain, "sm_90", bindings, out)
        return out

    return compiled


@pytest.fixture(scope="session")
def modules(build: Callable[..., Path]) -> dict[str, Path]:
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(NAMES, pool.map(build, NAMES), strict=True))


@pytest.fixture(scope="module")
def peers() -> Iterator[Any]:
    with PEERS.Peers() as made:
        yield made


def left_behind() -> list[str]:
    """Shared memory of processes that are no more."""
    files = [path.name for path in Path("/dev/shm").iterdir()]
    found = [(name, re.match(r"(\d+):", name)) for name in files]
    return [name for name, pid in found if pid and not Path("/proc", pid[1]).exists()]


@pytest.fixture(autouse=True)
def nothing_leaks() -> Iterator[None]:
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    files = left_behind()
    yield
    assert (
        len(list(Path("/proc/self/fd").iterdir())) <= descriptors + 2
    )  # module fixtures may have begun
    assert left_behind() == files
