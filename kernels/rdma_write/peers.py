"""The two processes of a transfer, from their parent's view."""

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
    """Error of a peer: its last report, or its end without a report."""


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
        outcome. No timeout is needed, because every wait in a peer is limited."""
        try:
            line = self._channel.readline()
        except ConnectionResetError:
            line = ""
        if not line:
            raise PeerError(f"{self.role}: ended without a word")
        message = json.loads(line)
        if "unavailable" in message:
            raise Unavailable(message["unavailable"])
        if key not in message:
            raise PeerError(f"{self.role}: {message.get('error', message)}")
        return message if len(message) > 1 else message[key]

    def say(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # its last report can still be read
            self._channel.write(f"{line}\n")
            self._channel.flush()

    def finish(self) -> str | None:
        """Wait for the end of the peer; returns its error, if any."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)
        reports: list[Any] = []
        with contextlib.suppress(ConnectionResetError):  # it ended without reading all lines
            reports += (json.loads(line) for line in self._channel)
        self.close()
        return next((report["error"] for report in reports if "error" in report), None)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the channel, and remove files of the shm provider of a killed process."""
        with contextlib.suppress(BrokenPipeError):
            self._channel.close()
        self._end.close()
        for file in SHARED_MEMORY.glob(f"{self.pid}:*"):
            if re.fullmatch(rf"{self.pid}:\d+:\S*", file.name):
                file.unlink(missing_ok=True)


class Peers:
    """Creates peers as forks of one process, which loads libfabric once: that takes 0.2 s."""

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
            server_setup = setup | {"cores": server_cores, "profiles": profiles}
            self.server = peers.start("server", module, setup=server_setup)
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
        """Seconds per write, and the first wrong byte (empty: none).

        PeerError contains the server's error, if any, because it causes the client's.
        """
        self.client.say(str(seed))
        try:
            wrong: str = self.client.hear("wrong")
        except PeerError as error:
            self.client.kill()
            server_error = self.server.finish()
            self.kill()
            raise PeerError(
                f"server: {server_error}; {error}" if server_error else str(error)
            ) from None
        written = self.server.hear("writes")
        self.parts = written["parts"]
        return written["seconds"] / written["writes"], wrong

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
