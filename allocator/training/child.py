"""Processes with one allocator each, forked from a server that has imported PyTorch.

Each message to the server carries a socket for a new process. The new process sends its id,
receives its allocator, then answers requests; all messages are dicts. An error is answered as
{"error": one line} and ends the process.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Protocol

from analysis.api.measure import end_with_parent

from .allocators import Allocator, TimeInCalls, make
from .works import WORKS, Work

IMPORTED_ONCE: Final = "torch._dynamo"
"""Imported by the server before it forks; makes no CUDA calls. PyTorch's optimisers import it,
which takes nearly as long as importing PyTorch."""

ENVIRONMENT: Final = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""Makes cuBLAS deterministic."""

Message = dict[str, Any]


class Responder(Protocol):
    """Answers requests."""

    def answer(self, request: Message) -> Message: ...


class Worker:
    """The workloads of a process, one at a time. Between an answer and the next request it is idle,
    on the GPU, too."""

    def __init__(self, order: Message) -> None:
        import torch

        self._torch: Any = torch
        self._cpus = os.sched_getaffinity(0)
        self._allocator: Allocator = make(order["settings"], order["module"])
        torch.use_deterministic_algorithms(True)
        # Filling empty tensors would add a kernel to many allocations.
        torch.utils.deterministic.fill_uninitialized_memory = False
        self._work: Work | None = None

    def answer(self, request: Message) -> Message:
        match request:
            case {"drop": True}:
                return self._drop()
            case {"begin": str(name)}:
                return self._begin(name)
        return self._run(request["cpu"], counted=request["counted"])

    def _drop(self) -> Message:
        """Drop the current work and all cached memory, so that the next one starts without; returns
        the free bytes of the GPU."""
        self._work = None
        gc.collect()
        self._torch._C._cuda_clearCublasWorkspaces()
        cuda = self._torch.cuda
        cuda.synchronize()
        cuda.empty_cache()
        self._allocator.reset()
        return {"free": cuda.mem_get_info()[0]}

    def _begin(self, name: str) -> Message:
        """Create a work and run it once, on any CPU."""
        stay_on(self._cpus)
        make_work, _ = WORKS[name]
        self._work = make_work()
        values = self._work.run(TimeInCalls()).values
        self._torch.cuda.synchronize()
        return {"values": values}

    def _run(self, cpu: int, *, counted: bool) -> Message:
        """Run the work once, on one CPU."""
        if self._work is None:
            raise RuntimeError("no work was begun")
        stay_on({cpu})
        before = self._allocator.memory()
        spent = self._allocator.counting() if counted else TimeInCalls()
        run = self._work.run(spent)
        after = self._allocator.memory()
        per_step = {
            "host_time": run.times.host,
            "submit_time": run.times.submit,
            "gpu_time": run.times.gpu,
            "allocation_time": spent.seconds,
            "allocations": spent.allocations,
        }
        driver_calls = after.driver_calls - before.driver_calls  # includes the untimed steps
        return {
            "values": run.values,
            "steps": run.times.steps,
            "metrics": {
                **{name: value / self._work.steps for name, value in per_step.items()},
                "driver_calls": driver_calls / (self._work.steps + self._work.untimed),
                "allocation_share": spent.seconds / run.times.host,
                "reserved": after.reserved,
                "active": after.active,
            },
        }


def stay_on(cpus: set[int]) -> None:
    """Pin this process, with its current and future threads, to these CPUs."""
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # the thread has ended
            os.sched_setaffinity(int(thread.name), cpus)


def serve(connection: Connection, make_answering: Callable[[Message], Responder]) -> None:
    """Answer on `connection` until it is closed."""
    connection.send({"pid": os.getpid()})
    try:
        answering = make_answering(connection.recv())
        while True:
            connection.send(answering.answer(connection.recv()))
    except EOFError:
        return
    except Exception as error:  # every error is reported to the parent
        if not isinstance(error, (ImportError, RuntimeError)):
            traceback.print_exception(error)
        connection.send({"error": " ".join(str(error).split()) or repr(error)})


def fork_for(orders: socket.socket, make_answering: Callable[[Message], Responder]) -> None:
    """Fork a process for each message on `orders`, until that is closed."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, too, and ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.update(ENVIRONMENT)
    with suppress(ImportError):  # a process that needs it reports the error
        import_module(IMPORTED_ONCE)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # child processes are not waited for
    with orders:
        while True:
            asked, (*descriptors,), _, _ = socket.recv_fds(orders, 1, 1)
            if not asked:
                return
            if os.fork() == 0:
                try:
                    end_with_parent()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    orders.close()
                    gc.disable()
                    serve(Connection(descriptors[0]), make_answering)
                finally:
                    os._exit(0)
            os.close(descriptors[0])
