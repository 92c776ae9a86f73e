"""Transfers over the real libfabric: every byte, times, and failures of peers."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.measure.cpu import cores
from analysis.study import Variant
from analysis.toolchain.modules import load_python
from analysis.toolchain.packages import PACKAGES
from tests.compiled import QUICK, module_file
from tests.repository import STUDIES
from tests.waiting import wait_for

STUDY = STUDIES["rdma_write"]
WORKLOAD, PEERS = (load_python(STUDY, name) for name in ("workload", "peers"))
SHORT = {("pooled_contexts", "shm"), ("pooled_contexts", "tcp"), ("threads_pinned", "shm")}
"""Variants and providers without --long: a connection by TCP takes a second."""
PINNED = STUDY.variant("threads_pinned")
Session = Callable[..., Any]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """Starts a server of a variant with a connected client."""
    if reason := PACKAGES["libfabric"].unmet:
        pytest.skip(reason)
    here = cores()

    def start(
        variant: Variant, provider: str = "shm", limits: Any = (5.0, 30.0), **more: int
    ) -> Any:
        module = module_file(STUDY, variant, optimisation=QUICK)
        setup = {"provider": WORKLOAD.PROVIDERS.get(provider, provider)}
        setup |= dict(zip(("timeout_s", "idle_s"), limits, strict=True))
        sizes = {"devices": 2, "endpoints": 2, "page_bytes": 8, "pages": 50} | more
        devices = sizes["devices"]
        both = [here[i % len(here)] for i in range(2 * devices)]  # with few: slow, but correct
        return PEERS.session(peers, module, setup, both[:devices], both[devices:], **sizes)

    with PEERS.Peers() as peers:
        yield start


def left_behind() -> set[str]:
    """Shared memory of processes that have ended."""
    found = [(path.name, re.match(r"(\d+):", path.name)) for path in Path("/dev/shm").iterdir()]
    return {name for name, pid in found if pid and not Path("/proc", pid[1]).exists()}


@pytest.fixture(autouse=True)
def nothing_leaks(session: Session) -> Iterator[None]:
    descriptors, files = len(list(Path("/proc/self/fd").iterdir())), left_behind()
    yield
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
    # Other runs on this machine may kill a process, too, and remove its files a moment later.
    wait_for(lambda: not left_behind() - files)


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        pytest.param(*pair, marks=[] if pair in SHORT else [pytest.mark.long])
        for pair in ((name, one) for name in STUDY.variant_names for one in ("shm", "tcp"))
    ],
)
def test_all_pages_and_no_others_arrive(session: Session, name: str, provider: str) -> None:
    small, large = {"page_bytes": 8, "pages": 2000}, {"page_bytes": 65536, "pages": 7}
    for sizes in (small, large) if provider == "shm" else (small,):  # each takes a connection
        with session(STUDY.variant(name), provider=provider, **sizes) as transfer:
            for seed in (1, 2):
                seconds, wrong = transfer.fill(seed)
                assert wrong == "" and seconds > 0 and transfer.parts == {}


FAULTY = """
#include "operations.h"

// The size of the pages selects the fault: 16 B lose a page, 24 B misplace all.
void write_pages(Transfer& transfer) {
  for (Device& device : transfer.devices) {
    Operations operations(device, transfer.limits);
    const uint64_t bytes = device.fill->page_bytes, moved = bytes == 24 ? bytes : 0;
    device.page = bytes == 16 ? 1 : 0;
    device.rails[0].remote.address += moved;
    uint64_t left = 0;
    while (device.has_next()) {
      ++left;
      operations.post([&] { --left; });
    }
    while (left > 0) {
      operations.poll();
    }
    device.rails[0].remote.address -= moved;
  }
}
"""


def test_lost_and_misplaced_writes_are_detected(session: Session, tmp_path: Path) -> None:
    source = tmp_path / "faulty.cpp"
    source.write_text(FAULTY)
    pooled = STUDY.variant("pooled_contexts")
    flags = (*pooled.flags, f"-I{STUDY.folder}")
    faulty = replace(pooled, name=source.stem, path=source, flags=flags)
    for page_bytes in (8, 16, 24):
        with session(faulty, devices=1, endpoints=1, page_bytes=page_bytes) as transfer:
            _, wrong = transfer.fill(7)
            found = re.match(r"device 0, page \d+, byte \d: (not what|changed, though)", wrong)
            assert bool(found) == (page_bytes > 8), wrong


def test_the_workload_measures_a_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    if len(cores()) < 2:
        pytest.skip("both sides poll, so two cores are needed")
    monkeypatch.setattr(WORKLOAD, "cores", lambda: cores()[:2])  # so one thread is profiled
    variant, module = STUDY.variant("threads_pinned"), ModuleType("variant")
    module.__file__ = str(module_file(STUDY, variant, optimisation=QUICK))
    small = variant.cases[0]
    workload = WORKLOAD.Workload({**STUDY.constants, "writes": 5000}, np.random.default_rng(1))
    workload.prepare(small)
    operation = workload.bind(variant, module)
    operation.poison()
    operation.launch(0)
    assert operation.check() is None
    samples = operation.own_samples(0, 3)
    assert set(samples) == set(STUDY.metrics)
    parts = [samples[name][0] for name, one in STUDY.metrics.items() if one.part_of == "op_time"]
    assert len(samples["op_time"]) == 3 and 1e-9 < min(samples["op_time"]) < 1e-3
    assert min(parts) >= 0 and 1e-9 < sum(parts) < 1e-3 and samples["without_own"][0] > 1
    workload.prepare(replace(small, values={**small.values, "page_bytes": 65536}))
    assert list(workload.bind(variant, module).own_samples(0, 1)) == ["op_time"]
    workload.close()
    assert WORKLOAD.sides(2, [5, 6, 7, 8]) == ([5, 6], [7, 8])
    with pytest.raises(Skip, match="3 threads a side need 6 cores, here are 4"):
        WORKLOAD.sides(3, [5, 6, 7, 8])


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_a_killed_client_is_an_error_of_the_server(session: Session, provider: str) -> None:
    sizes = {"page_bytes": 256, "pages": 65536}
    ends_with_an_error = pytest.raises(RuntimeError)
    with ends_with_an_error, session(PINNED, provider, (1.0, 1.5), **sizes) as transfer:
        for seed in range(1, 20):
            transfer.client.say(str(seed))
        transfer.server.hear("writes")
        transfer.client.kill()
        error = transfer.server.finish()
        assert re.search(r"nothing completed for|failed|fi_\w+:", error), error
        raise RuntimeError


def test_a_killed_server_does_not_block_a_new_one(session: Session) -> None:
    is_lost = pytest.raises(PEERS.PeerError, match="client: ")
    with is_lost, session(PINNED, limits=(1.0, 30.0)) as transfer:
        assert transfer.fill(1)[1] == ""
        transfer.server.kill()
        transfer.fill(2)
    # Files of the next process identifiers, of which the server gets one.
    last, max_pid = subprocess.Popen(["true"]), int(Path("/proc/sys/kernel/pid_max").read_text())
    last.wait()
    coming = {(last.pid + i) % max_pid for i in range(1, 3000)} | set(range(300, 3300))
    files = [PEERS.SHARED_MEMORY / f"{pid}:{os.getuid()}:0" for pid in coming]
    made = [file for file in files if not file.exists()]  # keep files of other processes
    try:
        for file in made:
            file.write_bytes(bytes(4096))
        with session(PINNED) as transfer:
            assert transfer.server.pid in coming and transfer.fill(3)[1] == ""
    finally:
        for file in made:
            file.unlink(missing_ok=True)
