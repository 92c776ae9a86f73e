"""The two processes of a transfer, as seen by their parent."""

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
    """The error that a peer reported before it ended, or that it ended without a report."""


class Unavailable(Exception):
    """This machine cannot run the transfer; the message says why."""


class Peer:
    """One server or client process."""

    def __init__(self, role: str, end: socket.socket) -> None:
        self.role = role
        self._end = end
        self._channel = end.makefile("rw")
        self.pid: int = self.hear("pid")

    def hear(self, key: str) -> Any:
        """The value of `key` in the next line. PeerError or Unavailable if the line reports another
        outcome. No timeout is needed, because every wait in a peer has its own limit."""
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
        with contextlib.suppress(BrokenPipeError):  # its last report can still be read
            self._channel.write(f"{line}\n")
            self._channel.flush()

    def finish(self) -> str | None:
        """Let the peer end and wait for that; returns the error it ended with, if any."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)
        last: list[Any] = []
        with contextlib.suppress(ConnectionResetError):  # it died without reading all our lines
            last += (json.loads(line) for line in self._channel)
        self.close()
        return next((told["error"] for told in last if "error" in told), None)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the channel, and remove the files that the shm provider of a killed process
        left."""
        with contextlib.suppress(BrokenPipeError):
            self._channel.close()
        self._end.close()
        for file in SHARED_MEMORY.glob(f"{self.pid}:*"):
            if re.fullmatch(rf"{self.pid}:\d+:\S*", file.name):
                file.unlink(missing_ok=True)


class Peers:
    """Creates peers. Loading libfabric takes a fifth of a second, so peers are forks of one process
    that has loaded it."""

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
    """A server, a client connected to it, and the fills they perform."""

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
        """Parts of the last fill in seconds per write, by metric, if the server profiles."""
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
        """Seconds per write, and what is wrong with the bytes (empty: nothing).

        PeerError contains the server's error if it has one, because it causes the client's.
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
        """End both processes; PeerError if one of them ends with an error."""
        errors = [error for peer in (self.client, self.server) if (error := peer.finish())]
        self._open.clear()
        if errors:
            raise PeerError("; ".join(errors))

    def kill(self) -> None:
        for peer in self._open:
            peer.kill()
            with contextlib.suppress(ValueError):  # it may already be closed
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
