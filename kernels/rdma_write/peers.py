"""The two processes of a transfer, as their parent sees them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .peer import __file__ as PROGRAM

SHARED_MEMORY = Path("/dev/shm")


class PeerError(RuntimeError):
    """What a peer said before it ended, or that it ended without a word."""


class Unavailable(Exception):
    """Why this machine cannot run it."""


class Peer:
    """One server or client process."""

    def __init__(self, role: str, end: socket.socket) -> None:
        self.role = role
        self._end = end
        self._channel = end.makefile("rw")
        self.pid: int = self.hear("pid")

    def hear(self, key: str) -> Any:
        """The value under `key` of the next line. PeerError, or Unavailable, with what came else;
        every wait of a peer has a limit of its own, so this one needs none."""
        try:
            line = self._channel.readline()
        except ConnectionResetError:
            line = ""
        if not line:
            raise PeerError(f"{self.role}: ended without a word")
        told = json.loads(line)
        if "unavailable" in told:
            raise Unavailable(told["unavailable"])
        if key not in told:
            raise PeerError(f"{self.role}: {told.get('error', told)}")
        return told if len(told) > 1 else told[key]

    def say(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # its last words are still to be heard
            self._channel.write(f"{line}\n")
            self._channel.flush()

    def finish(self) -> str | None:
        """Let it end, and wait for that; the error it ended with, if any."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)
        last: list[Any] = []
        with contextlib.suppress(ConnectionResetError):  # it died with lines of ours unread
            last += (json.loads(line) for line in self._channel)
        self.close()
        return next((told["error"] for told in last if "error" in told), None)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Drop the channel, and what a killed process leaves behind of the provider shm."""
        with contextlib.suppress(BrokenPipeError):
            self._channel.close()
        self._end.close()
        for file in SHARED_MEMORY.glob(f"{self.pid}:*"):
            if re.fullmatch(rf"{self.pid}:\d+:\S*", file.name):
                file.unlink(missing_ok=True)


class Peers:
    """Makes peers. Loading libfabric takes a fifth of a second, so they are forks of one process
    that has."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-I", "-S", PROGRAM]
        with theirs:
            self._process = subprocess.Popen(command, stdin=theirs.fileno())

    def start(self, role: str, module: Path, **order: Any) -> Peer:
        ours, theirs = socket.socketpair()
        with theirs:
            text = json.dumps({"module": str(module), "role": role, **order})
            socket.send_fds(self._orders, [text.encode()], [theirs.fileno()])
        return Peer(role, ours)

    def close(self) -> None:
        self._orders.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Session:
    """A server, a client connected to it, and the fills they do together."""

    def __init__(
        self,
        peers: Peers,
        module: Path,
        setup: dict[str, Any],
        server_cores: list[int],
        client_cores: list[int],
        *,
        profiles: bool = False,
        **transfer: int,
    ) -> None:
        self._open: list[Peer] = []
        self.parts: dict[str, float] = {}
        """Parts of the last fill in seconds a write, by metric, where the server profiles."""
        try:
            own = setup | {"cores": server_cores, "profiles": profiles}
            self.server = peers.start("server", module, setup=own)
            self._open.append(self.server)
            address = self.server.hear("address")
            self.client = peers.start(
                "client", module, setup=setup | {"cores": client_cores}, server=address, **transfer
            )
            self._open.append(self.client)
            self.client.hear("connected")
        except BaseException:
            self.kill()
            raise

    def fill(self, seed: int) -> tuple[float, str]:
        """Seconds a write, and what was wrong with the bytes (empty: nothing).

        PeerError with the server's error where it has one, since the client's follows from it.
        """
        self.client.say(str(seed))
        try:
            wrong: str = self.client.hear("wrong")
        except PeerError as error:
            self.client.kill()
            said = self.server.finish()
            self.kill()
            raise PeerError(f"server: {said}; {error}" if said else str(error)) from None
        told = self.server.hear("writes")
        self.parts = told["parts"]
        return told["seconds"] / told["writes"], wrong

    def close(self) -> None:
        """Say goodbye; PeerError where one of the two ends with an error."""
        errors = [error for peer in (self.client, self.server) if (error := peer.finish())]
        self._open.clear()
        if errors:
            raise PeerError("; ".join(errors))

    def kill(self) -> None:
        for peer in self._open:
            peer.kill()
            with contextlib.suppress(ValueError):  # it may be closed already
                peer.finish()
        self._open.clear()


@contextlib.contextmanager
def session(*arguments: Any, **more: Any) -> Iterator[Session]:
    made = Session(*arguments, **more)
    try:
        yield made
        made.close()
    finally:
        made.kill()
