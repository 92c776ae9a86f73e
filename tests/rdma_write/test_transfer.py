"""Writes over the real libfabric: every byte, and every way a peer can go wrong."""
# ruff: noqa: SIM117 - what is expected to fail stands inside what must end well

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from analysis import ROOT
from analysis.build.compile import compile_bindings, compile_module
from analysis.build.libfabric import MISSING, find_libfabric
from analysis.build.toolchain import Toolchain, find_toolchain
from analysis.charts import _load
from analysis.errors import FieldError, HotpathError
from analysis.measure.cell import Skip
from analysis.measure.cores import cores
from analysis.measure.modules import load_workload
from analysis.measure.needs import Provision
from analysis.results.published import load_published
from analysis.study import discover

STUDY = discover()["rdma_write"]
WORKLOAD = load_workload(STUDY)
PEERS: Any = WORKLOAD.peers
NAMES = STUDY.variant_names

# What tells a fault of a write path from a correct one.
FAULTY = """
#include "operations.h"

void write_pages(Transfer& transfer) {
  for (Device& device : transfer.devices) {
    Operations operations(device, transfer.limits);
    uint64_t posted = 0;
    uint64_t finished = 0;
    const RemoteRegion right = device.rails[0].remote;
    FAULT
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
    "right": "",
    "lost": "device.page = 1;",
    "misplaced": "device.rails[0].remote.address += device.fill->page_bytes;",
    "too_low": "device.rails[0].remote.address -= device.fill->page_bytes;",
}


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
        variant = STUDY.variant(NAMES[-1] if source else name)
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


def setup(provider: str = "shm", timeout_s: float = 5, idle_s: float = 10) -> dict[str, Any]:
    name = WORKLOAD.PROVIDERS.get(provider, provider)
    return {"provider": name, "timeout_s": timeout_s, "idle_s": idle_s}


def some_cores(count: int) -> list[int]:
    """As many as asked, some more than once where there are fewer: slow, but as correct."""
    here = cores()
    return [here[i % len(here)] for i in range(count)]


def session(peers: Any, module: Path, devices: int = 2, **more: Any) -> Any:
    settings = setup(**{k: more.pop(k) for k in ("provider", "timeout_s", "idle_s") if k in more})
    sizes = {"devices": devices, "endpoints": 2, "page_bytes": 8, "pages": 50} | more
    both = some_cores(2 * devices)
    return PEERS.session(peers, module, settings, both[:devices], both[devices:], **sizes)


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


@pytest.mark.parametrize("provider", ["shm", "tcp"])
@pytest.mark.parametrize("name", NAMES)
def test_every_byte_arrives_and_no_other_changes(
    peers: Any, modules: dict[str, Path], name: str, provider: str
) -> None:
    for sizes in ({"page_bytes": 8, "pages": 2000}, {"page_bytes": 65536, "pages": 7}):
        with session(peers, modules[name], provider=provider, **sizes) as transfer:
            for seed in (1, 2):
                seconds, wrong = transfer.fill(seed)
                assert wrong == ""
                assert 0 < seconds < 1


@pytest.mark.parametrize("endpoints", [1, 3])
def test_devices_and_endpoints_of_any_number(
    peers: Any, modules: dict[str, Path], endpoints: int
) -> None:
    for devices in (1, 3):
        sizes = {"devices": devices, "endpoints": endpoints, "pages": endpoints}
        with session(peers, modules["pooled_contexts"], **sizes) as transfer:
            assert transfer.fill(3)[1] == ""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_write_that_is_lost_or_misplaced_is_seen(
    peers: Any, build: Callable[..., Path], fault: str
) -> None:
    module = build(f"fault_{fault}", FAULTY.replace("FAULT", FAULTS[fault]))
    with session(peers, module, devices=1, endpoints=1) as transfer:
        seconds, wrong = transfer.fill(7)
        assert seconds > 0
        if fault == "right":
            assert wrong == ""
        else:
            assert re.match(r"device 0, page \d+, byte \d: (not what|changed, though)", wrong)


@pytest.mark.parametrize("provider", ["shm", "tcp"])
@pytest.mark.parametrize("name", ["threads_shared_atomic", "pooled_contexts"])
def test_a_client_killed_in_mid_run_is_an_error_of_the_server(
    peers: Any, modules: dict[str, Path], name: str, provider: str
) -> None:
    limits = {"timeout_s": 1.0, "idle_s": 1.5}
    sizes = {"page_bytes": 256, "pages": 65536}
    with pytest.raises(RuntimeError):  # its session cannot end well
        with session(peers, modules[name], provider=provider, **limits, **sizes) as transfer:
            for seed in range(1, 20):
                transfer.client.say(str(seed))
            transfer.server.hear("writes")
            transfer.client.kill()
            started = time.monotonic()
            error = transfer.server.finish()
            assert time.monotonic() - started < 10
            assert error
            assert re.search(r"nothing completed for|failed|fi_\w+:", error), error
            raise RuntimeError


def test_a_server_killed_and_started_again(peers: Any, modules: dict[str, Path]) -> None:
    module = modules["sharded_padded"]
    with pytest.raises(PEERS.PeerError, match="client: "):
        with session(peers, module, timeout_s=1.0) as transfer:
            assert transfer.fill(1)[1] == ""
            transfer.server.kill()
            transfer.fill(2)
    with session(peers, module) as transfer:
        assert transfer.fill(3)[1] == ""


def test_a_server_nobody_comes_to_gives_up(peers: Any, modules: dict[str, Path]) -> None:
    given = setup(idle_s=0.3) | {"cores": some_cores(1)}
    server = peers.start("server", modules["single_thread"], setup=given)
    server.hear("address")
    assert re.match("waiting for a client: nothing completed for 0.3", server.finish())


CONNECT, FILL, RECEIVED = 1, 2, 3


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def fill_message(page_bytes: int, pages: int, destinations: list[int]) -> bytes:
    body = struct.pack(f"<{len(destinations)}I", *destinations)
    return words(FILL, 9, 9, page_bytes, pages) + body


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (b"", "type: expected 8 bytes, got 0 (the message is truncated)"),
        (b"abc", "type: expected 8 bytes, got 3 (the message is truncated)"),
        (words(77), "message type: expected 1 to 4, got 77"),
        (words(CONNECT, 1, 1), "message type: expected RANDOM_FILL, got CONNECT"),
        (words(RECEIVED), "message type: expected RANDOM_FILL, got RECEIVED"),
        (words(FILL, 9), "RANDOM_FILL seed: expected 8 bytes, got 0 (the message is truncated)"),
        (fill_message(8, 4, [0, 1]), "expected 4 items, got 2 (the message is truncated)"),
        (fill_message(8, 4, [0, 1, 2, 3]) + b"x", "message: expected 56 bytes, got 57"),
        (fill_message(0, 2, [0, 1]), "RANDOM_FILL page_bytes: expected 8 to 16777216, got 0"),
        (fill_message(12, 2, [0, 1]), "RANDOM_FILL page_bytes: expected a multiple of 8, got 12"),
        (fill_message(2**63, 2, [0, 1]), "RANDOM_FILL page_bytes: expected 8 to 16777216"),
        (fill_message(8, 2**62, [0]), "RANDOM_FILL pages: expected 2 to 536870912, got"),
        (fill_message(8, 2**29, [0]), "expected 536870912 items, got 1 (the message is"),
        (fill_message(8, 0, []), "RANDOM_FILL pages: expected 2 to 536870912, got 0"),
        (fill_message(8, 2, [0, 63]), "RANDOM_FILL destination: expected a page below 63, got 63"),
        (fill_message(4096, 2, [0, 1]), "RANDOM_FILL destination: expected a page below 0, got 0"),
    ],
)
def test_a_wrong_request_is_one_clear_error(
    peers: Any, modules: dict[str, Path], message: bytes, error: str
) -> None:
    with pytest.raises(PEERS.PeerError) as caught:
        with session(peers, modules["single_thread"], timeout_s=1.0) as transfer:
            transfer.client.say(f"send {message.hex()}")
            transfer.client.hear("sent")
            raise PEERS.PeerError(transfer.server.finish())
    assert error in str(caught.value)


def one_endpoint(length: int = 4, address: bytes = b"none", size: int = 64) -> bytes:
    return words(length) + address + words(0, size, 1)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (words(FILL), "message type: expected CONNECT, got RANDOM_FILL"),
        (words(CONNECT), "CONNECT devices: expected 8 bytes, got 0"),
        (words(CONNECT, 0, 1), "CONNECT devices: expected 1 to 8, got 0"),
        (words(CONNECT, 10**9, 1), "CONNECT devices: expected 1 to 8, got 1000000000"),
        (words(CONNECT, 1, 2**60), "CONNECT endpoints: expected 1 to 16, got 11529"),
        (words(CONNECT, 1, 1), "CONNECT address length: expected 8 bytes, got 0"),
        (words(CONNECT, 1, 1, 2**40), "CONNECT address length: expected 1 to 256, got 1099"),
        (words(CONNECT, 1, 1, 9) + b"abc", "CONNECT address: expected 9 bytes, got 3"),
        (words(CONNECT, 1, 1) + one_endpoint(size=2**60), "CONNECT region bytes: expected 1 to"),
        (words(CONNECT, 1, 1) + one_endpoint() + b"x", "message: expected 60 bytes, got 61"),
        (
            words(CONNECT, 8, 1) + 8 * one_endpoint(),
            "CONNECT devices: expected at most 2, a core each, got 8",
        ),
    ],
)
def test_a_wrong_greeting_is_one_clear_error(
    peers: Any, modules: dict[str, Path], message: bytes, error: str
) -> None:
    with pytest.raises(PEERS.PeerError) as caught:
        with session(peers, modules["single_thread"], timeout_s=1.0, connects=False) as transfer:
            transfer.client.say(f"send {message.hex()}")
            transfer.client.hear("sent")
            raise PEERS.PeerError(transfer.server.finish())
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("sizes", "error"),
    [
        ({"page_bytes": 0}, "page_bytes: expected 8 to 16777216, got 0"),
        ({"pages": 10**9}, "pages: expected 2 to"),
        ({"pages": 1}, "pages: expected 2 to"),
        ({"page_bytes": 16777216, "pages": 1000}, "buffer bytes: expected 1 to 4294967296"),
        ({"endpoints": 17}, "endpoints: expected 1 to 16, got 17"),
    ],
)
def test_a_client_refuses_absurd_sizes(
    peers: Any, modules: dict[str, Path], sizes: dict[str, int], error: str
) -> None:
    with pytest.raises(PEERS.PeerError, match=error):
        with session(peers, modules["single_thread"], **sizes):
            pytest.fail("connected")


def test_a_provider_that_is_not_there_is_a_reason_to_skip(
    peers: Any, modules: dict[str, Path]
) -> None:
    with pytest.raises(PEERS.Unavailable, match="libfabric offers no provider nonesuch here"):
        with session(peers, modules["single_thread"], provider="nonesuch"):
            pytest.fail("connected")


def workload() -> Any:
    return WORKLOAD.Workload(STUDY.constants | {"writes": 500}, np.random.default_rng(1))


def test_the_workload_measures_a_transfer(modules: dict[str, Path]) -> None:
    if len(cores()) < 2:
        pytest.skip("both sides poll, so two cores are needed")
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
    assert list(samples) == ["op_time"]
    assert all(1e-9 < value < 1e-3 for value in samples["op_time"])
    made.close()


def test_more_threads_than_cores_are_skipped() -> None:
    assert WORKLOAD.sides(2, [5, 6, 7, 8]) == ([5, 6], [7, 8])
    with pytest.raises(Skip, match="3 threads a side need 6 cores, here are 4"):
        WORKLOAD.sides(3, [5, 6, 7, 8])


WATCHED = [
    *(("thread", name) for name in NAMES),
    *(("address,undefined", name) for name in ("lazy_progress", "pooled_contexts")),
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


@pytest.mark.parametrize(("sanitizer", "name"), WATCHED)
def test_sanitizers_find_nothing(
    peer_program: Callable[[str, str], Path], name: str, sanitizer: str
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
    with subprocess.Popen([*start, "server", "shm", "2"], env=environment, **pipes) as server:
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


def folder_with(path: Path, *names: str) -> Path:
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).touch()
    return path


def test_libfabric_is_taken_from_a_folder(tmp_path: Path) -> None:
    plain = folder_with(tmp_path / "a", "include/rdma/fabric.h", "lib/libfabric.so")
    found = find_libfabric(str(plain))
    assert found is not None
    assert (found.include, found.library) == (plain / "include", plain / "lib" / "libfabric.so")
    assert f"-idirafter{plain / 'include'}" in found.compile_flags
    library = "usr/lib/x86_64-linux-gnu/libfabric.so.1"
    unpacked = folder_with(tmp_path / "b", "usr/include/rdma/fabric.h", library)
    found = find_libfabric(str(unpacked))
    assert found is not None
    assert (found.include, found.library) == (unpacked / "usr/include", unpacked / library)


def test_counters_lie_where_the_page_draws_them(toolchain: Toolchain) -> None:
    charts = _load(STUDY.folder / "charts.py")
    fields = {
        name: charts.counter_fields(STUDY.variant(name).path).set_index("field")["offset"]
        for name in charts.DRAWN
    }
    assert set(fields["threads_shared_atomic"] // 64) == {0}
    array, padded = fields["sharded_array"], fields["sharded_padded"]
    assert array["posted[7]"] - array["posted[0]"] == 7 * 8
    assert array["finished_devices"] == 2 * 64
    assert len(set(padded // 64)) == len(padded) == 17


def test_the_printed_ladder_is_read_as_times_per_write() -> None:
    rows = load_published(ROOT / "results", STUDY).set_index("variant")["seconds"]
    assert rows["single_thread"] / rows["threads_pinned"] == pytest.approx(2.361 / 0.560)
    assert rows["sharded_array"] == pytest.approx(1 / 2.904e6)


def test_a_folder_without_libfabric_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match="config: libfabric: expected `auto` or a folder with"):
        find_libfabric(str(tmp_path))


def test_without_libfabric_its_variants_are_skipped_and_nothing_else() -> None:
    without = replace(find_toolchain(), libfabric=None)
    for study in discover().values():
        for variant in study.variants:
            needs = "libfabric" in variant.needs
            assert without.can_build(variant) is not needs
            if needs:
                assert Provision(None, "13.0").unmet(variant) == MISSING
                assert Provision(None, "13.0", libfabric=True).unmet(variant) is None
    with pytest.raises(HotpathError, match="libfabric is not installed"):
        compile_bindings(STUDY, without, Path("never.o"))
