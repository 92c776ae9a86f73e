"""Processes with one allocator each, forked from one that has imported PyTorch.

Each message to that one comes with a socket for a new process, on which the new one receives its
allocator, then what to do, and answers in dicts. It begins with its number. What goes wrong is
answered as {"error": one line} and ends the process.
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

from .allocators import Allocator, Spent, make
from .works import WORKS, Work

IMPORTED_ONCE: Final = "torch._dynamo"
"""Before any process is forked; it makes no call of CUDA. PyTorch's optimisers import it, which
takes nearly as long as PyTorch itself. A round has both already, as study.yaml says."""

ENVIRONMENT: Final = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""What makes cuBLAS deterministic."""

Message = dict[str, Any]


class Answering(Protocol):
    """Does what it is asked for."""

    def answer(self, request: Message) -> Message: ...


class Worker:
    """The works of a process, one at a time. Nothing of it runs, on the GPU either, from an answer
    to the next request."""

    def __init__(self, order: Message) -> None:
        import torch

        self._torch: Any = torch
        self._cpus = os.sched_getaffinity(0)
        self._allocator: Allocator = make(order["settings"], order["module"])
        torch.use_deterministic_algorithms(True)
        # Filling what is only allocated would add a kernel to every other allocation.
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
        """Have no work, so that the next one's memory begins with nothing of it; the bytes that are
        free then."""
        self._work = None
        gc.collect()
        self._torch._C._cuda_clearCublasWorkspaces()
        cuda = self._torch.cuda
        cuda.synchronize()
        cuda.empty_cache()
        self._allocator.reset()
        return {"free": cuda.mem_get_info()[0]}

    def _begin(self, name: str) -> Message:
        """Make a work and do it once, on any CPU."""
        stay_on(self._cpus)
        make_work, _ = WORKS[name]
        self._work = make_work()
        values = self._work.run(Spent()).values
        self._torch.cuda.synchronize()
        return {"values": values}

    def _run(self, cpu: int, *, counted: bool) -> Message:
        """Do the work once, on one CPU."""
        if self._work is None:
            raise RuntimeError("no work was begun")
        stay_on({cpu})
        before = self._allocator.memory()
        spent = self._allocator.counting() if counted else Spent()
        run = self._work.run(spent)
        after = self._allocator.memory()
        per_step = {
            "host_time": run.times.host,
            "submit_time": run.times.submit,
            "gpu_time": run.times.gpu,
            "allocation_time": spent.seconds,
            "allocations": spent.allocations,
        }
        driver_calls = after.driver_calls - before.driver_calls  # of the untimed steps as well
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
    """Let this process run on these CPUs alone, with all threads that it has or makes."""
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread.name), cpus)


def serve(connection: Connection, make_answering: Callable[[Message], Answering]) -> None:
    """Answer on `connection` until it is closed."""
    connection.send({"pid": os.getpid()})
    try:
        answering = make_answering(connection.recv())
        while True:
            connection.send(answering.answer(connection.recv()))
    except EOFError:
        return
    except Exception as error:  # whatever it is, whoever asked hears of it
        if not isinstance(error, (ImportError, RuntimeError)):
            traceback.print_exception(error)
        connection.send({"error": " ".join(str(error).split()) or repr(error)})


def fork_for(orders: socket.socket, make_answering: Callable[[Message], Answering]) -> None:
    """Fork a process for each message on `orders`, until that is closed."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks is told, too, and ends this
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.update(ENVIRONMENT)
    with suppress(ImportError):  # whoever needs it will say so
        import_module(IMPORTED_ONCE)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the processes
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
