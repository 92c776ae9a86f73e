"""The pinning of `timed_chunks` beside a timed neighbour, to find causes of its slow calls."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import numpy as np

from analysis.api.study import Case, FieldError

from .neighbours import Beside, NeighbourProcess, latencies, summary
from .timed_neighbour import timed_module, timed_process
from .waits import Calls, Window, chunk_times, neighbour_waits
from .workload import Workload as UntimedWorkload

TIMED_ALONE_S: Final = 0.5
"""Seconds for which the neighbour calls before the pinning: longer than all registrations take, so
that a call that is rarely slow is found, too."""


class Workload(UntimedWorkload):
    """The timed neighbour of one process. It repeats cudaMalloc and cudaFree in a process."""

    _timed: ClassVar[NeighbourProcess]

    @classmethod
    def before_cuda(cls) -> None:
        """Fork the neighbour."""
        cls._timed = timed_process()

    def _beside(self, case: Case) -> Beside:
        if case["beside"] == "nobody":
            return TimedBeside(None)
        if case["beside"] != "process":
            raise FieldError(f"case {case.id}: beside", "nobody or process", case["beside"])
        if case["calls"] != "malloc":
            raise FieldError(f"case {case.id}: calls", "malloc", case["calls"])
        return TimedBeside(self._timed)


class TimedBeside(Beside):
    """Calls of a timed neighbour around a timed operation."""

    def __init__(self, neighbour: NeighbourProcess | None) -> None:
        super().__init__(None, "")
        self._timed = neighbour
        self._module: Any = None
        self._calls_made: Calls = np.empty((0, 4), np.int64)

    @contextmanager
    def calling(self, module: Any, alone_s: float = 0) -> Iterator[None]:
        """Have the neighbour call, first alone for TIMED_ALONE_S if for any time, then during the
        block."""
        self._module = timed_module(module)
        if self._timed is None:
            yield
            return
        self._timed.start(module)
        try:
            time.sleep(TIMED_ALONE_S if alone_s else 0)
            yield
        finally:
            self._calls_made = self._timed.stop()

    def alone(self, until_ns: int) -> Mapping[str, float]:
        """Statistics of the calls that were over before the pinning began, in seconds."""
        over = self._calls_made[self._calls_made[:, 1] <= until_ns]
        return summary("alone_", latencies(over[:, :2], (0, until_ns)))

    def summary(self, prefix: str, window: Window) -> Mapping[str, float]:
        """Times of the chunks of the last block, and what the neighbour's calls waited for. The
        prefix is `call_` or `unpin_`."""
        if prefix == "unpin_":
            chunks = self._module.unregistrations()
            times = chunk_times("chunk_unregister_", chunks)
            return times | neighbour_waits(prefix, self._calls_made, chunks, window)
        chunks = self._module.registrations()
        begin, end = int(chunks[0, 0]), int(chunks[-1, 1])
        touching = window[0], begin
        return {
            "register_time": (end - begin) * 1e-9,
            **chunk_times("chunk_register_", chunks),
            **self._while_touching(touching),
            **neighbour_waits(prefix, self._calls_made, chunks, window, touching),
        }

    def _while_touching(self, touching: Window) -> Mapping[str, float]:
        """The longest of the calls that ended before the first registration began."""
        over = self._calls_made[self._calls_made[:, 1] <= touching[1]]
        seconds = latencies(over[:, :2], touching)
        return {"touch_worst": float(seconds.max())} if seconds.size else {}
