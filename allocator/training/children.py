"""The parent's side of the processes with one allocator each."""

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

from .child import Message, Responder, Worker, fork_for

ANSWERS_WITHIN_S: Final = 60.0
"""Seconds without an answer after which a process counts as hanging; far more than any request
takes."""

ENDS_WITHIN_S: Final = 10.0


class ChildError(RuntimeError):
    """One line: the error that ended a process, or that it ended without an answer."""


class Child:
    """A process with the allocator that `order` describes. ChildError where it cannot start."""

    def __init__(self, name: str, connection: Connection, order: Message) -> None:
        self._name = name
        self._connection = connection
        self._process: int | None = None
        number = self.receive()["pid"]
        with suppress(ProcessLookupError):  # it has already ended; the next request reports that
            self._process = os.pidfd_open(number)
        self.send_request(order)

    def ask(self, within_s: float = ANSWERS_WITHIN_S, **request: Any) -> Message:
        """The answer to a request; ChildError if the process ends or does not answer in time, and
        then it is gone."""
        self.send_request(request)
        return self.receive(within_s)

    def send_request(self, request: Message) -> None:
        with suppress(BrokenPipeError):  # its last answer can still be read
            self._connection.send(request)

    def receive(self, within_s: float = ANSWERS_WITHIN_S) -> Message:
        """The next answer; ChildError as in `ask`."""
        try:
            if not self._connection.poll(within_s):
                raise ChildError(f"{self._name}: no answer within {within_s:g} s")
            answer: Message = self._connection.recv()
            if "error" in answer:
                raise ChildError(f"{self._name}: {answer['error']}")
        except (EOFError, ConnectionResetError):
            self.end()
            raise ChildError(f"{self._name}: its process ended without a word") from None
        except ChildError:
            self.end(within_s=0)
            raise
        return answer

    @property
    def is_gone(self) -> bool:
        return self._connection.closed

    def leave(self) -> None:
        """Let the process end."""
        self._connection.close()

    def end(self, within_s: float = ENDS_WITHIN_S) -> None:
        """Let the process end, and wait until its GPU memory is released."""
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
    """Processes by name, each started at its first use, and again after it has ended.

    All are forked from a server, which is forked from this process at construction. This process
    must not have used CUDA before: a forked process could not use it then.
    """

    def __init__(self, make_answering: Callable[[Message], Responder] = Worker) -> None:
        self._children: dict[str, Child] = {}
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._server = get_context("fork").Process(
                target=self._serve, args=(theirs, make_answering)
            )
            self._server.start()
        # The next round needs their GPU memory. A round does not run atexit functions.
        Finalize(None, self.close, exitpriority=0)

    def get(self, name: str, **order: Any) -> Child:
        """The process of this name, with the allocator that `order` describes."""
        if name not in self._children or self._children[name].is_gone:
            ours, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self._orders, [b"+"], [theirs.fileno()])
            self._children[name] = Child(name, Connection(ours.detach()), order)
        return self._children[name]

    def ask_all(
        self, orders: Mapping[str, Message], **request: Any
    ) -> tuple[dict[str, Message], dict[str, str]]:
        """Send a request to all of these processes, then wait for all: their answers, and the
        errors of those that have ended."""
        asked: dict[str, Child] = {}
        answers: dict[str, Message] = {}
        wrong: dict[str, str] = {}
        for name, order in orders.items():
            try:
                asked[name] = self.get(name, **order)
            except ChildError as error:
                wrong[name] = str(error)
        for child in asked.values():
            child.send_request(request)
        for name, child in asked.items():
            try:
                answers[name] = child.receive()
            except ChildError as error:
                wrong[name] = str(error)
        return answers, wrong

    def _serve(self, theirs: socket.socket, make_answering: Callable[[Message], Responder]) -> None:
        self._orders.close()  # so that the server ends with this process
        fork_for(theirs, make_answering)

    def close(self) -> None:
        for child in self._children.values():
            child.leave()  # so that all clean up at the same time
        for child in self._children.values():
            child.end()
        self._children.clear()
        self._orders.close()
        self._server.join()
