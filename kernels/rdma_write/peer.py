"""Server and client processes, forked from one process that has already loaded libfabric.

Started as `python -I -S peer.py` with a Unix socket as standard input. Each message on it is a line
of JSON, {module, role, setup, ...}, together with a socket for the process to create. The process
reports events on that socket, one line of JSON each. An error is reported in the same way and ends
the process.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any, TextIO

PR_SET_PDEATHSIG = 1
MAX_MESSAGE_BYTES = 65536


def load(path: str) -> Any:
    """The built variant, with its classes Setup, Server and Client."""
    name = f"{path}.variant"  # for a name it knows, pybind11 would return the first module again
    loader = ExtensionFileLoader(name, path)
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def tell(channel: TextIO, **what: object) -> None:
    channel.write(json.dumps(what) + "\n")
    channel.flush()


def serve(channel: TextIO, module: Any, setup: Any) -> None:
    """Report the address, then the time of each request, until the client disconnects."""
    server = module.Server(setup)
    tell(channel, address=server.address().hex())
    server.accept()
    while written := server.serve():
        writes, seconds, parts = written
        tell(channel, writes=writes, seconds=seconds, parts=parts)


def ask(channel: TextIO, module: Any, setup: Any, server: str, **transfer: int) -> None:
    """For each line received, a seed, request a fill and report what is wrong with its bytes.

    A line `send HEX` sends those bytes as a message instead.
    """
    client = module.Client(setup, bytes.fromhex(server), **transfer)
    tell(channel, connected=True)
    for line in channel:
        if line.startswith("send "):
            client.send(bytes.fromhex(line.removeprefix("send ")))
            tell(channel, sent=True)
        else:
            tell(channel, wrong=client.fill(int(line)))
    client.bye()


def run(channel: TextIO, module: Any, role: str, setup: dict[str, Any], **more: Any) -> None:
    tell(channel, pid=os.getpid())
    kind = "error"
    try:
        try:
            made = module.Setup(**setup)
            (serve if role == "server" else ask)(channel, module, made, **more)
        except module.ProviderUnavailable as error:
            kind = "unavailable"
            raise RuntimeError(str(error)) from None
    except (RuntimeError, ValueError) as error:
        tell(channel, **{kind: str(error)})


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    orders = socket.socket(fileno=0)
    modules: dict[str, Any] = {}
    ready: set[str] = set()
    while True:
        text, (*fds,), _, _ = socket.recv_fds(orders, MAX_MESSAGE_BYTES, 1)
        if not text:
            return
        order = json.loads(text)
        with socket.socket(fileno=fds[0]) as end, end.makefile("rw") as channel:
            try:
                path = order.pop("module")
                if path not in modules:
                    modules[path] = load(path)
                if order["setup"]["provider"] not in ready:
                    modules[path].prepare(order["setup"]["provider"])
                    ready.add(order["setup"]["provider"])
            except (ImportError, RuntimeError) as error:
                tell(channel, unavailable=str(error))
                continue
            if os.fork() == 0:
                die_with_parent()
                orders.close()
                run(channel, modules[path], **order)
                channel.flush()
                os._exit(0)


if __name__ == "__main__":
    main()
