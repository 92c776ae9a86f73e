"""Built variants of the RDMA writes, and the process that creates peers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.measure.cores import cores
from analysis.toolchain.libfabric import MISSING, Libfabric
from analysis.toolchain.modules import load_python
from tests.compiled import module_file, toolchain
from tests.repository import STUDIES
from tests.waiting import wait_for

STUDY = STUDIES["rdma_write"]
WORKLOAD: Any = load_python(STUDY, "workload")
PEERS: Any = load_python(STUDY, "peers")
Session = Callable[..., Any]


@pytest.fixture(scope="session")
def libfabric() -> Libfabric:
    found = toolchain().libfabric
    if found is None:
        pytest.skip(MISSING)
    return found


@pytest.fixture(scope="module")
def session(libfabric: Libfabric) -> Iterator[Session]:
    """Starts a server with a connected client of a built variant."""
    here = cores()

    def start(module: str | Path, *, devices: int = 2, **more: Any) -> Any:
        if isinstance(module, str):
            module = module_file(STUDY, STUDY.variant(module), optimisation="-O1")
        provider = more.pop("provider", "shm")
        setup = {"provider": WORKLOAD.PROVIDERS.get(provider, provider)}
        limits = {"timeout_s": 5.0, "idle_s": 30.0}
        setup |= {limit: more.pop(limit, usual) for limit, usual in limits.items()}
        sizes = {"devices": devices, "endpoints": 2, "page_bytes": 8, "pages": 50} | more
        both = [here[i % len(here)] for i in range(2 * devices)]  # with few: slow, but correct
        return PEERS.session(peers, module, setup, both[:devices], both[devices:], **sizes)

    with PEERS.Peers() as peers:
        yield start


def left_behind() -> set[str]:
    """Shared memory of processes that have ended."""
    found = [(path.name, re.match(r"(\d+):", path.name)) for path in Path("/dev/shm").iterdir()]
    return {name for name, pid in found if pid and not Path("/proc", pid[1]).exists()}


@pytest.fixture(autouse=True)
def nothing_leaks(request: pytest.FixtureRequest) -> Iterator[None]:
    if "session" in request.fixturenames:
        request.getfixturevalue("session")  # starts before files are counted
        descriptors, files = len(list(Path("/proc/self/fd").iterdir())), left_behind()
        yield
        assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
        # Other runs on this machine may kill a process, too, and remove its files a moment later.
        wait_for(lambda: not left_behind() - files)
    else:
        yield
