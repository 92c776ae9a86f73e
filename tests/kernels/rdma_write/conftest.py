"""Fixtures of the RDMA writes: built variants, and the process that creates peers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.toolchain.libfabric import MISSING, Libfabric
from tests.compiled import module_file, toolchain
from tests.kernels.rdma_write.sessions import PEERS, STUDY
from tests.waiting import wait_for


@pytest.fixture(scope="session")
def libfabric() -> Libfabric:
    found = toolchain().libfabric
    if found is None:
        pytest.skip(MISSING)
    return found


class Modules(dict[str, Path]):
    """Variants by name, each built at its first use."""

    def __missing__(self, name: str) -> Path:
        return self.setdefault(name, module_file(STUDY, STUDY.variant(name), optimisation="-O1"))


@pytest.fixture(scope="session")
def modules(libfabric: Libfabric) -> dict[str, Path]:
    return Modules()


@pytest.fixture(scope="module")
def peers() -> Iterator[Any]:
    with PEERS.Peers() as made:
        yield made


def left_behind() -> set[str]:
    """Shared memory of processes that have ended."""
    files = [path.name for path in Path("/dev/shm").iterdir()]
    found = [(name, re.match(r"(\d+):", name)) for name in files]
    return {name for name, pid in found if pid and not Path("/proc", pid[1]).exists()}


@pytest.fixture(autouse=True)
def nothing_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    if not {"peers", "modules"}.intersection(request.fixturenames):  # the test starts no peers
        yield
        return
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    files = left_behind()
    yield
    assert (
        len(list(Path("/proc/self/fd").iterdir())) <= descriptors + 2
    )  # module fixtures may have started
    # Other runs on this machine may kill a process, too, and remove its files a moment later.
    wait_for(lambda: not left_behind() - files)
