"""The processes that have an allocator each, as seen by whoever asks them."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from typing import Any, Final

from .child import Answering, Message, Worker, fork_for

ANSWERS_WITHIN_S: Final = 60.0
"""Seconds after which a process that says nothing counts as hanging: far more than any takes."""

ENDS_WITHIN_S: Final = 10.0


class ChildError(RuntimeError):
    """What a process said before it ended, or that it ended without a word; one line."""


class Child:
    """A process with the allocator that `order` says. ChildError where it cannot be had."""

    def __init__(self, name: str, connection: Connection, order: Message) -> None:
        self._name = name
        self._connection = connection
        self._process: int | None = None
        number = self.hear()["pid"]
        with suppress(ProcessLookupError):  # it has ended already, as the next question will tell
            self._process = os.pidfd_open(number)
        self.tell(order)

    def ask(self, within_s: float = ANSWERS_WITHIN_S, **request: Any) -> Message:
        """Its answer; ChildError where it ends, or has not answered in time. Then it is gone."""
        self.tell(request)
        return self.hear(within_s)

    def tell(self, request: Message) -> None:
        with suppress(BrokenPipeError):  # what it said before it ended can still be read
            self._connection.send(request)

    def hear(self, within_s: float = ANSWERS_WITHIN_S) -> Message:
        """The answer to what it was told; ChildError as above."""
        try:
            if not self._connection.poll(within_s):
                raise ChildError(f"{self._name}: no answer within {within_s:g} s")
            told: Message = self._connection.recv()
            if "error" in told:
                raise ChildError(f"{self._name}: {told['error']}")
        except (EOFError, ConnectionResetError):
            self.end()
            raise ChildError(f"{self._name}: its process ended without a word") from None
        except ChildError:
            self.end(within_s=0)
            raise
        return told

    @property
    def is_gone(self) -> bool:
        return self._connection.closed

    def leave(self) -> None:
        """Let it end."""
        self._connection.close()

    def end(self, within_s: float = ENDS_WITHIN_S) -> None:
        """Let it end, and wait until it is gone with all that it had on the GPU."""
        self.leave()
        if self._process is not None:
            poll = select.poll()
            poll.register(self._process, select.POLLIN)
            if not poll.poll(within_s * 1000):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)
                poll.poll(ENDS_WITHIN_S * 1000)
            os.close(self._process)
            self._process = None


class Children:
    """Processes by name, each started when it is first asked for, and again when it has ended.

    All are forked from one that is forked from this process when this is made, which must not have
    used CUDA by then: what is forked later cannot use it.
    """

    def __init__(self, make_answering: Callable[[Message], Answering] = Worker) -> None:
        self._children: dict[str, Child] = {}
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = get_context("fork").Process(
                target=self._serve, args=(theirs, make_answering)
            )
            self._server.start()
        # The next round must not find them on the GPU. A round runs no functions of atexit.
        Finalize(None, self.close, exitpriority=0)

    def get(self, name: str, **order: Any) -> Child:
        """The process of this name, which has the allocator that `order` says."""
        if name not in self._children or self._children[name].is_gone:
            ours, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self._orders, [b"+"], [theirs.fileno()])
            self._children[name] = Child(name, Connection(ours.detach()), order)
        return self._children[name]

    def ask_all(
        self, orders: Mapping[str, Message], **request: Any
    ) -> tuple[dict[str, Message], dict[str, str]]:
        """Ask processes of these names and orders at the same time, and wait for all: what they
        answer, and what is wrong with those that have ended instead."""
        asked: dict[str, Child] = {}
        told: dict[str, Message] = {}
        wrong: dict[str, str] = {}
        for name, order in orders.items():
            try:
                asked[name] = self.get(name, **order)
            except ChildError as error:
                wrong[name] = str(error)
        for child in asked.values():
            child.tell(request)
        for name, child in asked.items():
            try:
                told[name] = child.hear()
            except ChildError as error:
                wrong[name] = str(error)
        return told, wrong

    def _serve(self, theirs: socket.socket, make_answering: Callable[[Message], Answering]) -> None:
        self._orders.close()  # so that it ends when its only other end does
        fork_for(theirs, make_answering)

    def close(self) -> None:
        for child in self._children.values():
            child.leave()  # all tidy up at the same time
        for child in self._children.values():
            child.end()
        self._children.clear()
        self._orders.close()
        self._server.join()
