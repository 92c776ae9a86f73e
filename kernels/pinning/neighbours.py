"""The neighbour of a pinning: a process or a thread that makes CUDA calls meanwhile."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.api.measure import end_with_parent
from kernels.common.extension import load_extension

ANSWERS_WITHIN_S: Final = 60.0
"""Far more than the start of a CUDA context takes."""

ALONE_S: Final = 0.05
"""Seconds for which a neighbour calls before the pinning, for comparison."""

Times = npt.NDArray[np.int64]
"""Begin and end of calls in ns of the monotonic clock, [calls, 2]."""


def latencies(times: Times, window: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Seconds of the calls that overlap the window, in ns."""
    begun, ended = times[:, 0], times[:, 1]
    inside = (begun < window[1]) & (ended > window[0])
    return np.asarray((ended - begun)[inside] * 1e-9, np.float64)


def summary(prefix: str, seconds: npt.NDArray[np.float64]) -> dict[str, float]:
    """Median, 99th percentile, which is the time of a call, and worst. Empty without a call: the
    system did not run the neighbour."""
    if not seconds.size:
        return {}
    return {
        f"{prefix}median": float(np.median(seconds)),
        f"{prefix}p99": float(np.percentile(seconds, 99, method="higher")),
        f"{prefix}worst": float(seconds.max()),
    }


class NeighbourProcess:
    """A process with a separate CUDA context, made before this process uses CUDA.

    `make` makes a neighbour there from the path of a variant's file and further words; `columns`
    are the numbers of each call that the neighbour's stop() returns.
    """

    def __init__(self, make: Callable[..., Any], columns: int) -> None:
        self._columns = columns
        fork = get_context("fork")
        self._connection, theirs = fork.Pipe()
        arguments = (make, theirs, self._connection)
        self._process = fork.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        Finalize(None, self.close, exitpriority=0)

    def start(self, module: Any, *words: str) -> None:
        """Start calls by the neighbour of this built variant."""
        self._ask((str(Path(module.__file__).resolve()), *words))

    def stop(self) -> Times:
        """Stop the calls; returns int64 [calls, columns]."""
        return np.frombuffer(self._ask(None), np.int64).reshape(-1, self._columns)

    def close(self) -> None:
        """End the process. Idempotent."""
        self._connection.close()
        self._process.join(ANSWERS_WITHIN_S)

    def _ask(self, request: tuple[str, ...] | None) -> bytes:
        """The answer. RuntimeError with the error of the process, or if it does not answer."""
        try:
            self._connection.send(request)
            if not self._connection.poll(ANSWERS_WITHIN_S):
                raise RuntimeError(f"neighbour: no answer within {ANSWERS_WITHIN_S:g} s")
            answer: bytes | str = self._connection.recv()
        except (EOFError, OSError) as error:
            raise RuntimeError("neighbour: its process ended without an answer") from error
        if isinstance(answer, str):
            raise RuntimeError(f"neighbour: {answer}")
        return answer


def calling_process() -> NeighbourProcess:
    """A process whose neighbour makes the calls that `start` names, and times each."""
    return NeighbourProcess(lambda path, calls: load_extension(path).Neighbour(calls), 2)


class NeighbourThread:
    """A thread of this process, in its CUDA context."""

    def start(self, module: Any, calls: str) -> None:
        self._neighbour = module.Neighbour(calls)

    def stop(self) -> Times:
        times: Times = self._neighbour.stop()
        del self._neighbour
        return times


class Beside:
    """Calls of a neighbour around an operation. Without a neighbour, nothing is called."""

    def __init__(self, neighbour: NeighbourProcess | NeighbourThread | None, calls: str) -> None:
        self._neighbour = neighbour
        self._calls = calls
        self._times: Times = np.empty((0, 2), np.int64)

    @contextmanager
    def calling(self, module: Any, alone_s: float = 0) -> Iterator[None]:
        """Have the neighbour call, first for `alone_s`, then during the block."""
        if self._neighbour is None:
            yield
            return
        self._neighbour.start(module, self._calls)
        try:
            time.sleep(alone_s)
            yield
        finally:
            self._times = self._neighbour.stop()

    def summary(self, prefix: str, window: tuple[int, int]) -> Mapping[str, float]:
        """Statistics of the calls of the last block that overlap the window, in seconds."""
        if self._neighbour is None:
            return {}
        return summary(prefix, latencies(self._times, window))

    def alone(self, until_ns: int) -> Mapping[str, float]:
        """Statistics of the calls of the last block that were over by then, in seconds."""
        if self._neighbour is None:
            return {}
        over = self._times[self._times[:, 1] <= until_ns]
        return summary("alone_", latencies(over, (0, until_ns)))


def _serve(make: Callable[..., Any], connection: Connection, theirs: Connection) -> None:
    """Answer until the connection is closed; an error is answered as text."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, too, and ends this process
    theirs.close()
    neighbour: Any = None
    try:
        while True:
            request = connection.recv()
            answer: bytes | str = b""
            try:
                if request is None:
                    answer, neighbour = neighbour.stop().tobytes(), None
                else:
                    neighbour = make(*request)
            except (ImportError, RuntimeError, ValueError) as error:
                answer = str(error)
            connection.send(answer)
    except EOFError:
        os._exit(0)
