"""The cost of a kind of memory: allocation, use and freeing, and holding a large amount of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from analysis.api.measure import PythonOperation, Skip
from analysis.api.memory import allocatable_bytes
from kernels.common.arrays import Bytes
from kernels.common.host_memory import HostMemory
from kernels.common.outputs import POISON, wrong_byte

WORK_BYTES = 4 * 2**20
"""Small enough for the private caches: the available share of the last-level cache varies."""
WORK_TIMES = 50
"""How often the work is timed before, while and after memory is held. The fastest time counts:
other activity on a machine slows down single runs by more than the held memory may."""
HELD_SHARE = 4
"""At most 1/HELD_SHARE of the memory that this process may still allocate is held."""


class Price(PythonOperation):
    """Memory of one kind that is allocated, copied into, copied out of and freed.

    The check: the driver reports the right kind, and the bytes copied out are those copied in.
    """

    def __init__(self, kind: str, payload: Bytes) -> None:
        HostMemory(kind, payload.nbytes).close()  # if this is refused, the case is skipped
        self._kind, self._payload = kind, payload
        self._out = np.zeros_like(payload)
        self._is_page_locked: bool | None = None

    def poison(self) -> None:
        self._out[:] = POISON
        self._is_page_locked = None

    def check(self) -> str | None:
        expected = self._kind != "pageable"
        if self._is_page_locked != expected:
            return f"page-locked: expected {expected}, got {self._is_page_locked}"
        return wrong_byte(self._out, self._payload)

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """Seconds to allocate (pages present), register, write, read and free all of it."""
        del stream
        cycles = [self._cycle() for _ in range(count)]
        return {name: [cycle[name] for cycle in cycles] for name in cycles[0]}

    def launch(self, stream: int) -> None:
        del stream
        self._cycle()

    def _cycle(self) -> dict[str, float]:
        memory = HostMemory(self._kind, self._payload.nbytes)
        self._is_page_locked = memory.is_page_locked()
        write = _seconds(lambda: np.copyto(memory.bytes, self._payload))
        read = _seconds(lambda: np.copyto(self._out, memory.bytes))
        memory.close()
        parts = {f"{part}_time": seconds for part, seconds in memory.seconds.items()}
        return parts | {"write_time": write, "read_time": read}


class Pressure(PythonOperation):
    """Work in pageable memory while `held_bytes` of a kind of memory are held.

    The check: the work computes the right sum. Skip if too little memory is free.
    """

    def __init__(self, kind: str, held_bytes: int) -> None:
        if held_bytes > (available := allocatable_bytes()) // HELD_SHARE:
            raise Skip(f"{held_bytes} B is more than a quarter of {available} B available")
        HostMemory(kind, WORK_BYTES).close()  # if this is refused, the case is skipped
        self._kind, self._held_bytes = kind, held_bytes
        self._sum: int | None = None

    def launch(self, stream: int) -> None:
        del stream
        self._work()

    def poison(self) -> None:
        self._sum = None

    def check(self) -> str | None:
        expected = WORK_BYTES // 8
        return None if self._sum == expected else f"sum: expected {expected}, got {self._sum}"

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """work_time: the fastest time of the work in seconds while the memory is held; work_share:
        its ratio to the mean of the fastest times before and after."""
        del stream, count
        before = self._fastest()
        held = HostMemory(self._kind, self._held_bytes)
        beside = self._fastest()
        held.close()
        without = (before + self._fastest()) / 2
        return {"work_time": [beside], "work_share": [beside / without]}

    def _fastest(self) -> float:
        self._work()  # the first run finds other data in the caches
        return min(_seconds(self._work) for _ in range(WORK_TIMES))

    def _work(self) -> None:
        memory = HostMemory("pageable", WORK_BYTES)
        words = memory.bytes.view(np.uint64)
        words[:] = 1
        self._sum = int(words.sum())
        memory.close()


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) * 1e-9
