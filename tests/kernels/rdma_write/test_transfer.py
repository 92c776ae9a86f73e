"""Checks of every byte of a transfer, over the real libfabric."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.measure.cores import cores
from analysis.study.source import source_files
from analysis.toolchain.libfabric import Libfabric
from tests.compiled import module_file
from tests.kernels.rdma_write.sessions import NAMES, STUDY, WORKLOAD, session

# A correct write path, or a wrong one: the size of the pages selects the fault.
FAULTY = """
#include "operations.h"

void write_pages(Transfer& transfer) {
  for (Device& device : transfer.devices) {
    Operations operations(device, transfer.limits);
    uint64_t posted = 0;
    uint64_t finished = 0;
    const RemoteRegion right = device.rails[0].remote;
    switch (device.fill->page_bytes) {
CASES
    }
    while (device.has_next()) {
      operations.post([&] { ++finished; });
      ++posted;
    }
    while (finished < posted) {
      operations.poll();
    }
    device.rails[0].remote = right;
  }
}
"""
FAULTS = {
    "none": "",
    "lost": "device.page = 1;",
    "misplaced": "device.rails[0].remote.address += device.fill->page_bytes;",
    "too_low": "device.rails[0].remote.address -= device.fill->page_bytes;",
}
PAGE_BYTES = {fault: 8 * number for number, fault in enumerate(FAULTS, start=1)}
CASES = [f"case {PAGE_BYTES[fault]}:\n{code}\nbreak;" for fault, code in FAULTS.items()]


SMALL: dict[str, Any] = {"page_bytes": 8, "pages": 2000}
LARGE: dict[str, Any] = {"page_bytes": 65536, "pages": 7}


OVER_TCP = ("pooled_contexts", "threads_shared_atomic")
"""Variants that use TCP without --long: a connection takes a second, and all use it alike."""
BUILT = (
    *("single_thread", "pooled_contexts", "pooled_contexts_again"),
    *("threads_shared_atomic", "threads_pinned"),
)
"""Variants that other tests build without --long."""


def arrivals() -> Iterator[Any]:
    """Parameters of each variant: its name, the provider, and the sizes of its transfers."""
    for name in NAMES:
        long = [pytest.mark.long]
        over_shm = [] if name in BUILT else long
        over_tcp = [] if name in OVER_TCP else long
        yield pytest.param(name, "shm", [SMALL, LARGE], id=f"{name}-shm", marks=over_shm)
        yield pytest.param(name, "tcp", [SMALL], id=f"{name}-tcp", marks=over_tcp)
        # A variant treats pages of both sizes alike.
        yield pytest.param(name, "tcp", [LARGE], id=f"{name}-tcp-large", marks=long)


@pytest.mark.parametrize(("name", "provider", "transfers"), [*arrivals()])
def test_all_pages_arrive_and_no_other_byte_changes(
    peers: Any,
    modules: dict[str, Path],
    name: str,
    provider: str,
    transfers: list[dict[str, Any]],
) -> None:
    for sizes in transfers:
        with session(peers, modules[name], provider=provider, **sizes) as transfer:
            for seed in (1, 2):
                seconds, wrong = transfer.fill(seed)
                assert wrong == ""
                assert 0 < seconds < 1


@pytest.mark.parametrize("endpoints", [1, 3])
def test_any_number_of_devices_and_endpoints(
    peers: Any, modules: dict[str, Path], endpoints: int
) -> None:
    for devices in (1, 3):
        sizes = {"devices": devices, "endpoints": endpoints, "pages": endpoints}
        with session(peers, modules["pooled_contexts"], **sizes) as transfer:
            assert transfer.fill(3)[1] == ""


@pytest.mark.parametrize("fault", FAULTS)
def test_lost_and_misplaced_writes_are_detected(
    peers: Any, libfabric: Libfabric, tmp_path: Path, fault: str
) -> None:
    source = tmp_path / "faulty.cpp"
    source.write_text(FAULTY.replace("CASES", "\n".join(CASES)))
    pooled = STUDY.variant("pooled_contexts")
    flags = (*pooled.flags, f"-I{STUDY.folder}")
    faulty = replace(pooled, name=source.stem, path=source, flags=flags)
    module = module_file(STUDY, faulty, optimisation="-O1")
    sizes = {"devices": 1, "endpoints": 1, "page_bytes": PAGE_BYTES[fault]}
    with session(peers, module, **sizes) as transfer:
        seconds, wrong = transfer.fill(7)
        assert seconds > 0
        if fault == "none":
            assert wrong == ""
        else:
            assert re.match(r"device 0, page \d+, byte \d: (not what|changed, though)", wrong)


def workload() -> Any:
    return WORKLOAD.Workload({**STUDY.constants, "writes": 500}, np.random.default_rng(1))


def test_workload_measures_a_transfer(
    modules: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if len(cores()) < 2:
        pytest.skip("both sides poll, so two cores are needed")
    monkeypatch.setattr(WORKLOAD, "cores", lambda: cores()[:2])  # so one thread is profiled
    variant = STUDY.variant("threads_pinned")
    module = ModuleType("variant")
    module.__file__ = str(modules[variant.name])
    made = workload()
    made.prepare(variant.cases[0])
    operation = made.bind(variant, module)
    operation.poison()
    operation.launch(0)
    assert operation.check() is None
    samples = operation.own_samples(0, 3)
    assert set(samples) == set(STUDY.metrics)
    assert len(samples["op_time"]) == 3
    assert all(1e-9 < value < 1e-3 for value in samples["op_time"])
    assert samples["without_own"][0] > 1
    small = variant.cases[0]
    large = replace(small, values={**small.values, "page_bytes": 65536})
    made.prepare(large)
    assert list(made.bind(variant, module).own_samples(0, 1)) == ["op_time"]
    made.close()


def test_source_includes_the_program_of_the_peers() -> None:
    files = {path.name for path in source_files(STUDY, STUDY.variants[0])}
    assert {"workload.py", "peers.py", "peer.py", "profile.h"} <= files


def test_more_threads_than_cores_are_skipped() -> None:
    assert WORKLOAD.sides(2, [5, 6, 7, 8]) == ([5, 6], [7, 8])
    with pytest.raises(Skip, match="3 threads a side need 6 cores, here are 4"):
        WORKLOAD.sides(3, [5, 6, 7, 8])
