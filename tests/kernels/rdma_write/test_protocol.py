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

from tests.kernels.rdma_write.conftest import PEERS, Session
from tests.waiting import DEADLINE_S


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


CONNECT, FILL, RECEIVED = 1, 2, 3


def words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def fill_message(page_bytes: int, pages: int, *destinations: int) -> bytes:
    body = struct.pack(f"<{len(destinations)}I", *destinations)
    return words(FILL, 9, 9, page_bytes, pages) + body


INVALID: dict[bool, dict[bytes, str]] = {
    True: {
        b"": "type: expected 8 bytes, got 0 (the message is truncated)",
        words(RECEIVED): "message type: expected RANDOM_FILL, got RECEIVED",
        fill_message(8, 4, 0, 1): "expected 4 items, got 2 (the message is truncated)",
        fill_message(8, 2**62, 0): "RANDOM_FILL pages: expected 2 to 536870912, got",
        fill_message(8, 2, 0, 63): "RANDOM_FILL destination: expected a page below 63, got 63",
    },
    False: {
        words(FILL): "message type: expected CONNECT, got RANDOM_FILL",
        words(CONNECT, 1, 2**60): "CONNECT endpoints: expected 1 to 16, got 11529",
        words(CONNECT, 1, 1, 2**40): "CONNECT address length: expected 1 to 256, got 1099",
    },
}
"""Errors of messages, after the client has connected, or instead."""


@pytest.mark.parametrize("connects", INVALID)
def test_an_invalid_message_is_one_clear_error(session: Session, connects: bool) -> None:
    for message, error in INVALID[connects].items():
        with pytest.raises(PEERS.PeerError) as caught:
            with session("single_thread", connects=connects) as transfer:
                transfer.client.say(f"send {message.hex()}")
                transfer.client.hear("sent")
                raise PEERS.PeerError(transfer.server.finish())
        assert error in str(caught.value)
