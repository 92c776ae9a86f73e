"""Transfers over the real libfabric: every byte, times, failures of peers, and races."""
# ruff: noqa: SIM117 - an expected failure is inside a session that must end well

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.measure.cores import cores
from analysis.toolchain.libfabric import MISSING, Libfabric
from analysis.toolchain.modules import load_python
from tests.compiled import module_file, program, toolchain
from tests.repository import STUDIES
from tests.waiting import DEADLINE_S, wait_for

HERE = Path(__file__).parent
STUDY = STUDIES["rdma_write"]
WORKLOAD, PEERS = (load_python(STUDY, name) for name in ("workload", "peers"))
PARTS = {name for name, metric in STUDY.metrics.items() if metric.part_of == "op_time"}
QUICK = {
    *((name, "shm") for name in ("single_thread", "threads_pinned")),
    *((n, p) for n in ("pooled_contexts", "threads_shared_atomic") for p in ("shm", "tcp")),
}
"""Variants and providers without --long: a connection by TCP takes a second."""
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

    def start(module: str | Path, *, devices: int = 2, provider: str = "shm", **more: Any) -> Any:
        if isinstance(module, str):
            module = module_file(STUDY, STUDY.variant(module), optimisation="-O1")
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
def nothing_leaks(session: Session) -> Iterator[None]:
    descriptors, files = len(list(Path("/proc/self/fd").iterdir())), left_behind()
    yield
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
    # Other runs on this machine may kill a process, too, and remove its files a moment later.
    wait_for(lambda: not left_behind() - files)


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        pytest.param(*pair, marks=[] if pair in QUICK else [pytest.mark.long])
        for pair in ((name, one) for name in STUDY.variant_names for one in ("shm", "tcp"))
    ],
)
def test_all_pages_arrive_and_no_other_byte_changes(
    session: Session, name: str, provider: str
) -> None:
    small, large = {"page_bytes": 8, "pages": 2000}, {"page_bytes": 65536, "pages": 7}
    for sizes in (small, large) if provider == "shm" else (small,):  # each takes a connection
        with session(name, provider=provider, **sizes) as transfer:
            for seed in (1, 2):
                seconds, wrong = transfer.fill(seed)
                assert wrong == "" and seconds > 0 and transfer.parts == {}


FAULTS = {
    "none": "",
    "lost": "device.page = 1;",
    "misplaced": "device.rails[0].remote.address += device.fill->page_bytes;",
    "too_low": "device.rails[0].remote.address -= device.fill->page_bytes;",
}
CASES = [f"case {8 * n}: {fault} break;" for n, fault in enumerate(FAULTS.values(), start=1)]
FAULTY = f"""
#include "operations.h"

// The size of the pages selects the fault.
void write_pages(Transfer& transfer) {{
  for (Device& device : transfer.devices) {{
    Operations operations(device, transfer.limits);
    uint64_t posted = 0, finished = 0;
    const RemoteRegion right = device.rails[0].remote;
    switch (device.fill->page_bytes) {{ {" ".join(CASES)} }}
    while (device.has_next()) {{
      operations.post([&] {{ ++finished; }});
      ++posted;
    }}
    while (finished < posted) {{
      operations.poll();
    }}
    device.rails[0].remote = right;
  }}
}}
"""


def test_lost_and_misplaced_writes_are_detected(session: Session, tmp_path: Path) -> None:
    source = tmp_path / "faulty.cpp"
    source.write_text(FAULTY)
    pooled = STUDY.variant("pooled_contexts")
    flags = (*pooled.flags, f"-I{STUDY.folder}")
    faulty = replace(pooled, name=source.stem, path=source, flags=flags)
    module = module_file(STUDY, faulty, optimisation="-O1")
    for number, fault in enumerate(FAULTS, start=1):
        with session(module, devices=1, endpoints=1, page_bytes=8 * number) as transfer:
            _, wrong = transfer.fill(7)
            found = re.match(r"device 0, page \d+, byte \d: (not what|changed, though)", wrong)
            assert bool(found) == (fault != "none"), wrong


def test_parts_add_up_to_the_time_of_a_write(session: Session) -> None:
    for provider in ("shm", "tcp"):
        sizes: dict[str, Any] = {"provider": provider, "pages": 5000, "profiles": True}
        with session("single_thread", **sizes) as transfer:
            seconds, wrong = transfer.fill(1)
            parts = transfer.parts
            assert wrong == "" and set(parts) == PARTS
            assert all(parts[f"{part}_time"] > 0 for part in ("post", "poll", "own", "rest"))
            assert min(parts.values()) >= 0
            # The parts exclude reading the clock.
            assert 0.3 * seconds < sum(parts.values()) < 1.001 * seconds


def test_the_workload_measures_a_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    if len(cores()) < 2:
        pytest.skip("both sides poll, so two cores are needed")
    monkeypatch.setattr(WORKLOAD, "cores", lambda: cores()[:2])  # so one thread is profiled
    variant, module = STUDY.variant("threads_pinned"), ModuleType("variant")
    module.__file__ = str(module_file(STUDY, variant, optimisation="-O1"))
    small = variant.cases[0]
    constants = {**STUDY.constants, "writes": 500}
    workload = WORKLOAD.Workload(constants, np.random.default_rng(1))
    workload.prepare(small)
    operation = workload.bind(variant, module)
    operation.poison()
    operation.launch(0)
    assert operation.check() is None
    samples = operation.own_samples(0, 3)
    assert set(samples) == set(STUDY.metrics)
    assert len(samples["op_time"]) == 3 and 1e-9 < min(samples["op_time"]) < 1e-3
    assert samples["without_own"][0] > 1
    workload.prepare(replace(small, values={**small.values, "page_bytes": 65536}))
    assert list(workload.bind(variant, module).own_samples(0, 1)) == ["op_time"]
    workload.close()
    assert WORKLOAD.sides(2, [5, 6, 7, 8]) == ([5, 6], [7, 8])
    with pytest.raises(Skip, match="3 threads a side need 6 cores, here are 4"):
        WORKLOAD.sides(3, [5, 6, 7, 8])


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_a_killed_client_is_an_error_of_the_server(session: Session, provider: str) -> None:
    sizes: dict[str, Any] = {"page_bytes": 256, "pages": 65536, "timeout_s": 1.0, "idle_s": 1.5}
    with pytest.raises(RuntimeError):  # the session ends with an error
        with session("threads_shared_atomic", provider=provider, **sizes) as transfer:
            for seed in range(1, 20):
                transfer.client.say(str(seed))
            transfer.server.hear("writes")
            transfer.client.kill()
            started = time.monotonic()
            error = transfer.server.finish()
            assert time.monotonic() - started < DEADLINE_S
            assert re.search(r"nothing completed for|failed|fi_\w+:", error), error
            raise RuntimeError


def test_a_killed_server_does_not_block_a_new_one(session: Session) -> None:
    with pytest.raises(PEERS.PeerError, match="client: "):
        with session("threads_shared_atomic", timeout_s=1.0) as transfer:
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
        with session("threads_shared_atomic") as transfer:
            assert transfer.server.pid in coming and transfer.fill(3)[1] == ""
    finally:
        for file in made:
            file.unlink(missing_ok=True)


@pytest.mark.long
@pytest.mark.parametrize(
    ("sanitizer", "name", "role"),
    [
        *(("thread", name, "server") for name in STUDY.variant_names),
        ("thread", "selective_completion", "profiled"),
        ("address,undefined", "lazy_progress", "server"),
        ("address,undefined", "selective_completion", "profiled"),
    ],
)
def test_sanitizers_find_nothing(
    libfabric: Libfabric, name: str, sanitizer: str, role: str
) -> None:
    sources = [STUDY.variant(name).path, HERE / "peer.cpp"]
    flags = ["-std=c++20", "-O1", f"-fsanitize={sanitizer}", *libfabric.compile_flags]
    path = f"-Wl,--disable-new-dtags,-rpath={libfabric.library.parent}"
    libraries = str(libfabric.library), path
    peer = program(f"rdma-{sanitizer}-{name}", sources, STUDY.folder, flags, *libraries)
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
        command = [*start, "client", "shm", "2", server.stdout.readline().strip()]
        client = subprocess.run(command, env=environment, timeout=60, check=False, **pipes)
        _, stderr = server.communicate(timeout=60)
    assert (client.returncode, server.returncode) == (0, 0), client.stderr + stderr
    assert re.search(r"posted \d+, finished \d+ of \d+ writes, .* Mpps", stderr)
    assert "Sanitizer" not in stderr + client.stderr
