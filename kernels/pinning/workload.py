"""Memory that each case pins, the neighbour meanwhile, and the check of copies."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from analysis.api.measure import Operation, PythonOperation, Skip
from analysis.api.memory import DeviceArray, largest_pool, synchronize
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import Bytes, bytes_at
from kernels.common.outputs import POISON, wrong_byte
from kernels.common.random_bytes import random_bytes

from .neighbours import ALONE_S, Beside, NeighbourProcess, NeighbourThread, calling_process

MIB: Final = 2**20
GUARD: Final = 4096
"""Bytes behind a copy on the device that must not change."""
LINE: Final = 64
LINE_PITCH: Final = 64 * 1024
"""The GPU translates addresses in units of this size: a line of each is checked."""
EDGE: Final = 20_011
"""Bytes on either side of a border that are copied, an odd number."""
COPIED_BYTES: Final = 2**30
"""Bytes of a timed copy, at most."""


class Workload:
    """The neighbours of one process. Each case names the size and the neighbour."""

    _process: ClassVar[NeighbourProcess]

    @classmethod
    def before_cuda(cls) -> None:
        """Fork the neighbour."""
        cls._process = calling_process()

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._constants = constants
        self._rng = rng

    def prepare(self, case: Case) -> Inputs:
        """Skip if the host has too little memory, FieldError for an unknown neighbour."""
        size = case.payload_bytes
        if size > (limit := largest_pool()):
            raise Skip(f"pinning {size} B: this host allows {limit} B")
        chunk_bytes = self._setting(case, "chunk_mib") * MIB
        threads = min(self._setting(case, "threads"), len(os.sched_getaffinity(0)))
        return Inputs(size, chunk_bytes, threads, self._beside(case), self._rng)

    def _setting(self, case: Case, key: str) -> int:
        return case.number(key) if key in case.values else self._constants[key]

    def _beside(self, case: Case) -> Beside:
        match case["beside"]:
            case "nobody":
                return Beside(None, "")
            case "process":
                return Beside(self._process, str(case["calls"]))
            case "thread":
                return Beside(NeighbourThread(), str(case["calls"]))
        raise FieldError(f"case {case.id}: beside", "nobody, process or thread", case["beside"])


class Inputs:
    """Size, chunks, threads and neighbour of one case."""

    def __init__(
        self,
        size: int,
        chunk_bytes: int,
        threads: int,
        beside: Beside,
        rng: np.random.Generator,
    ) -> None:
        self._request = size, chunk_bytes, threads
        self._beside = beside
        self._rng = rng

    def bind(self, variant: Variant, module: Any) -> Operation:
        del variant
        return Pinning(module, self._request, self._beside, self._rng)


def edges(size: int, chunk_bytes: int) -> list[tuple[int, int]]:
    """Offset and bytes of the ranges at both ends of the memory and around every border."""
    borders = [0, *range(chunk_bytes, size, chunk_bytes), size]
    ranges = ((max(0, at - EDGE), min(size, at + EDGE)) for at in borders)
    return [(begin, end - begin) for begin, end in ranges]


class Pinning(PythonOperation):
    """One variant that pins memory. A launch pins, and first unpins what the last one has pinned;
    it times itself, because pinning again takes seconds."""

    waits = True

    def __init__(
        self,
        module: Any,
        request: tuple[int, int, int],
        beside: Beside,
        rng: np.random.Generator,
    ) -> None:
        self._module = module
        self._size = request[0]
        self._request = request
        self._beside = beside
        self._rng = rng
        self._pinned: Any = None
        self._samples: dict[str, float] = {}

    def launch(self, stream: int) -> None:
        del stream
        self._pinned = None
        with self._beside.calling(self._module, ALONE_S):
            pinned = self._module.Pinned(*self._request)
        self._pinned = pinned
        window = pinned.pinned_ns
        parts = {"touch_time": pinned.touch_ns, "register_time": pinned.register_ns}
        self._samples = {
            "host_time": (window[1] - window[0]) * 1e-9,
            **{name: spent * 1e-9 for name, spent in parts.items() if spent},
            **self._beside.alone(window[0]),
            **self._beside.summary("call_", window),
        }

    def poison(self) -> None:
        """Unpin, so that nothing of an earlier launch is found."""
        self._pinned = None

    def check(self) -> str | None:
        """None if the copy engine reads and writes the right bytes at every border and reads a
        line of every 64 KiB rightly."""
        faults = (check() for check in (self._wrong_line, self._wrong_edge))
        return next((fault for fault in faults if fault), None)

    def _bytes(self) -> Bytes:
        return bytes_at(self._pinned.address, self._size)

    def _wrong_line(self) -> str | None:
        lines = self._bytes().reshape(-1, LINE_PITCH)[:, :LINE]
        expected = random_bytes(lines.size, self._rng)
        lines[:] = expected.reshape(lines.shape)
        device = _poisoned(lines.size)
        self._pinned.copy_lines(device.pointer, LINE, LINE_PITCH, 0)
        synchronize(0)
        fault = _fault(device, expected)
        return f"a line of each 64 KiB, copied to the device: {fault}" if fault else None

    def _wrong_edge(self) -> str | None:
        for offset, size in edges(self._size, self._pinned.chunk_bytes):
            memory = self._bytes()[offset : offset + size]
            there, back = (random_bytes(size, self._rng) for _ in range(2))
            memory[:] = there
            device = _poisoned(size)
            self._pinned.copy(device.pointer, offset, size, True, 0)
            synchronize(0)
            if fault := _fault(device, there):
                return f"from offset {offset} to the device: {fault}"
            device.put(np.concatenate([back, np.full(GUARD, POISON, np.uint8)]))
            self._pinned.copy(device.pointer, offset, size, False, 0)
            synchronize(0)
            wrong = np.flatnonzero(memory != back)
            if wrong.size:
                return f"byte {offset + int(wrong[0])}, from the device: expected another value"
        return None

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """All metrics of the checked launch, a copy of its memory, and its unpinning."""
        del stream, count
        samples = {**self._samples, **self._copied()}
        with self._beside.calling(self._module):
            window = self._pinned.unpin()
        self._pinned = None
        samples["unpin_time"] = (window[1] - window[0]) * 1e-9
        samples |= self._beside.summary("unpin_", window)
        if {"alone_p99", "call_p99"} <= set(samples):
            samples["p99_slowdown"] = samples["call_p99"] / samples["alone_p99"]
        return {name: [value] for name, value in samples.items()}

    def _copied(self) -> Mapping[str, float]:
        """Time of a copy that begins within a chunk, and the status of one copy over a border."""
        size = min(self._size // 2, COPIED_BYTES)
        offset = min(self._size // 4, self._pinned.chunk_bytes // 2)
        device = DeviceArray((size,), np.uint8, "device")
        seconds = []
        for _ in range(2):  # the first is slow
            synchronize(0)
            started = time.perf_counter()
            self._pinned.copy(device.pointer, offset, size, True, 0)
            synchronize(0)
            seconds.append(time.perf_counter() - started)
        border = min(self._pinned.chunk_bytes, self._size // 2)
        status = self._pinned.copy_as_one(device.pointer, border - EDGE, 2 * EDGE, True, 0)
        synchronize(0)
        return {"copy_time": seconds[-1], "border_copy_status": float(status)}


def _poisoned(size: int) -> DeviceArray:
    """Device memory of `size` bytes and a guard behind them."""
    device = DeviceArray((size + GUARD,), np.uint8, "device")
    device.fill(POISON)
    return device


def _fault(device: DeviceArray, expected: Bytes) -> str | None:
    """The first byte on the device that is wrong, as a message; None if there is none."""
    return wrong_byte(device.get(np.empty(device.nbytes, np.uint8)), expected)
