"""Server and client processes, forked from one process that has loaded libfabric.

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
    name = f"{path}.variant"  # pybind11 would return the first module for a known name
    loader = ExtensionFileLoader(name, path)
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def report(channel: TextIO, **what: object) -> None:
    channel.write(json.dumps(what) + "\n")
    channel.flush()


def serve(channel: TextIO, module: Any, setup: Any) -> None:
    """Report the address, then the time of each request, until the client disconnects."""
    server = module.Server(setup)
    report(channel, address=server.address().hex())
    server.accept()
    while written := server.serve():
        writes, seconds, parts = written
        report(channel, writes=writes, seconds=seconds, parts=parts)


def ask(channel: TextIO, module: Any, setup: Any, server: str, **transfer: int) -> None:
    """Request a fill for each line received, a seed, and report the first wrong byte.

    A line `send HEX` sends these bytes as a message instead.
    """
    client = module.Client(setup, bytes.fromhex(server), **transfer)
    report(channel, connected=True)
    for line in channel:
        if line.startswith("send "):
            client.send(bytes.fromhex(line.removeprefix("send ")))
            report(channel, sent=True)
        else:
            report(channel, wrong=client.fill(int(line)))
    client.bye()


def run(channel: TextIO, module: Any, role: str, setup: dict[str, Any], **more: Any) -> None:
    report(channel, pid=os.getpid())
    kind = "error"
    try:
        try:
            made = module.Setup(**setup)
            (serve if role == "server" else ask)(channel, module, made, **more)
        except module.ProviderUnavailable as error:
            kind = "unavailable"
            raise RuntimeError(str(error)) from None
    except (RuntimeError, ValueError) as error:
        report(channel, **{kind: str(error)})


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no one waits for the children
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
                report(channel, unavailable=str(error))
                continue
            if os.fork() == 0:
                die_with_parent()
                orders.close()
                run(channel, modules[path], **order)
                channel.flush()
                os._exit(0)


if __name__ == "__main__":
    main()
