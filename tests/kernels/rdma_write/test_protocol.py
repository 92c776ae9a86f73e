"""Failures of peers, over the real libfabric."""
# ruff: noqa: SIM117 - the expected failure is inside a session that must end well

from __future__ import annotations

import os
import re
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.rdma_write.sessions import PEERS, session, setup, some_cores
from tests.waiting import DEADLINE_S


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        *(("threads_shared_atomic", provider) for provider in ("shm", "tcp")),
        pytest.param("selective_completion", "shm", marks=pytest.mark.long),
        pytest.param("selective_completion", "tcp", marks=pytest.mark.long),
    ],
)
def test_killed_client_is_an_error_of_the_server(
    peers: Any, modules: dict[str, Path], name: str, provider: str
) -> None:
    limits: dict[str, Any] = {"timeout_s": 1.0, "idle_s": 1.5}
    sizes: dict[str, Any] = {"page_bytes": 256, "pages": 65536}
    with pytest.raises(RuntimeError):  # the session ends with an error
        with session(peers, modules[name], provider=provider, **limits, **sizes) as transfer:
            for seed in range(1, 20):
                transfer.client.say(str(seed))
            transfer.server.hear("writes")
            transfer.client.kill()
            started = time.monotonic()
            error = transfer.server.finish()
            assert time.monotonic() - started < DEADLINE_S
            assert error
            assert re.search(r"nothing completed for|failed|fi_\w+:", error), error
            raise RuntimeError


def test_server_restarts_after_being_killed(peers: Any, modules: dict[str, Path]) -> None:
    module = modules["threads_shared_atomic"]
    with pytest.raises(PEERS.PeerError, match="client: "):
        with session(peers, module, timeout_s=1.0) as transfer:
            assert transfer.fill(1)[1] == ""
            transfer.server.kill()
            transfer.fill(2)
    with session(peers, module) as transfer:
        assert transfer.fill(3)[1] == ""


def test_files_of_a_killed_process_do_not_block_a_new_one(
    peers: Any, modules: dict[str, Path]
) -> None:
    # Candidates for the next process identifiers, of which the server gets one.
    last, max_pid = subprocess.Popen(["true"]), int(Path("/proc/sys/kernel/pid_max").read_text())
    last.wait()
    coming = {(last.pid + i) % max_pid for i in range(1, 3000)} | set(range(300, 3300))
    files = [PEERS.SHARED_MEMORY / f"{pid}:{os.getuid()}:0" for pid in coming]
    made = [file for file in files if not file.exists()]  # keep files of other processes
    try:
        for file in made:
            file.write_bytes(bytes(4096))
        with session(peers, modules["threads_shared_atomic"]) as transfer:
            assert transfer.server.pid in coming
            assert transfer.fill(1)[1] == ""
    finally:
        for file in made:
            file.unlink(missing_ok=True)


def test_server_without_a_client_times_out(peers: Any, modules: dict[str, Path]) -> None:
    settings = setup(idle_s=0.3) | {"cores": some_cores(1)}
    server = peers.start("server", modules["single_thread"], setup=settings)
    server.hear("address")
    waited = re.match(r"waiting for a client: nothing completed for (\S+) s", server.finish())
    assert waited
    assert float(waited[1]) >= 0.3


CONNECT, FILL, RECEIVED = 1, 2, 3


def error_of_server(peers: Any, module: Path, message: bytes, **settings: Any) -> str:
    """Error of a server that receives `message` from its client."""
    with pytest.raises(PEERS.PeerError) as caught:
        with session(peers, module, **settings) as transfer:
            transfer.client.say(f"send {message.hex()}")
            transfer.client.hear("sent")
            raise PEERS.PeerError(transfer.server.finish())
    return str(caught.value)


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
def test_invalid_request_is_one_clear_error(
    peers: Any, modules: dict[str, Path], message: bytes, error: str
) -> None:
    assert error in error_of_server(peers, modules["single_thread"], message)


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
def test_invalid_connect_is_one_clear_error(
    peers: Any, modules: dict[str, Path], message: bytes, error: str
) -> None:
    assert error in error_of_server(peers, modules["single_thread"], message, connects=False)


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
def test_client_rejects_sizes_out_of_range(
    peers: Any, modules: dict[str, Path], sizes: dict[str, int], error: str
) -> None:
    with pytest.raises(PEERS.PeerError, match=error):
        with session(peers, modules["single_thread"], **sizes):
            pytest.fail("connected")


def test_missing_provider_is_a_reason_to_skip(peers: Any, modules: dict[str, Path]) -> None:
    with pytest.raises(PEERS.Unavailable, match="libfabric offers no provider nonesuch here"):
        with session(peers, modules["single_thread"], provider="nonesuch"):
            pytest.fail("connected")
