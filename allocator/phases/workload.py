"""Replays allocation patterns from C++, from Python, and through tensor storages."""

from __future__ import annotations

import gc
import statistics
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from allocator.lib.patterns import ALLOCATE, FREE, PATTERNS, MissingTrace, Pattern
from allocator.lib.replay import MIN_TIMING_S, REPEATS, WARM_UP_S, CppReplay, Reported, brief
from analysis.api.measure import Operation, PythonOperation, Skip
from analysis.api.study import Case, FieldError, Variant

FULLY_REPORTED: Final = ("p4_final", "torch_caching")
"""Variants whose memory and single operations are reported in addition to times."""

COUNTED_PATTERNS: Final = (
    *("varying_sizes", "transformer_training", "gradient_accumulation", "memory_pressure"),
)
"""Patterns in which the driver calls of every step are reported."""

LATENCY_PATTERNS: Final = ("hot_pair", "random_pair")
FRAGMENTATION_PATTERNS: Final = ("random_pair", "transformer_training")


class Workload:
    """The tapes of a case, and the operations that replay them on a variant."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        del constants, rng  # tapes have fixed seeds, so that every round replays the same
        self._pattern = Pattern([])
        self._caller = self._name = ""

    def prepare(self, case: Case) -> None:
        self._caller, _, name = str(case["pattern"]).rpartition(".")
        if name not in PATTERNS:
            raise FieldError(f"case {case.id}: pattern", f"one of {sorted(PATTERNS)}", name)
        try:
            self._pattern = PATTERNS[name]()
        except MissingTrace as reason:
            raise Skip(str(reason)) from reason
        self._name = name

    def bind(self, variant: Variant, module: Any) -> Operation:
        if "torch" in variant.needs:
            import torch

            torch.cuda.init()
            torch.cuda.empty_cache()
        match self._caller:
            case "":
                return CppReplay(module, self._pattern, reported(variant, self._name))
            case "python":
                return PythonReplay(self._pattern, lambda: raw_calls(module))
            case "storage":
                return PythonReplay(self._pattern, lambda: storage_calls(module))
            case other:
                raise FieldError("case: pattern", "python. or storage. before its name", other)


def reported(variant: Variant, pattern: str) -> Reported:
    """The metrics of a variant in a pattern; fewer for most, to limit the size of results."""
    if variant.name not in FULLY_REPORTED:
        is_counted = variant.role == "step" and pattern in COUNTED_PATTERNS
        return Reported.CALLS if is_counted else Reported.NOTHING
    parts = Reported.CALLS | Reported.MEMORY
    parts |= Reported.FRAGMENTATION if pattern in FRAGMENTATION_PATTERNS else Reported.NOTHING
    return parts | (Reported.LATENCIES if pattern in LATENCY_PATTERNS else Reported.NOTHING)


class Calls(Protocol):
    """How Python allocates and frees; `allocate` returns whatever `free` accepts."""

    def allocate(self, size: int) -> Any: ...
    def free(self, held: Any) -> None: ...


@dataclass(frozen=True)
class RawCalls:
    allocate: Callable[[int], Any]
    free: Callable[[Any], None]


def raw_calls(module: Any) -> RawCalls:
    """Calls with plain pointers: functions of the variant, or methods of its compiled allocator."""
    if hasattr(module, "allocate"):
        return RawCalls(module.allocate, module.free)
    allocator = module.Allocator(module.DriverSource())
    return RawCalls(allocator.allocate, allocator.free)


class Driver:
    """The driver's calls, as the write-up's allocator makes them."""

    def __init__(self) -> None:
        from cuda.bindings import driver
        from cuda.bindings import runtime as cudart

        from analysis.api.memory import cuda

        cuda(cudart.cudaFree(0))  # creates the context that the driver calls need
        self._driver = driver

    def allocate(self, size: int) -> int:
        status, pointer = self._driver.cuMemAlloc(size)
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise MemoryError(f"cuMemAlloc of {size} B: {status.name}")
        return int(pointer)

    def free(self, pointer: int) -> None:
        (status,) = self._driver.cuMemFree(pointer)
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"cuMemFree: {status.name}")


class Storage:
    """The memory of a tensor without the tensor; freed with its last reference."""

    __slots__ = ("_memory", "nbytes", "pointer")

    def __init__(self, memory: Any, nbytes: int) -> None:
        self._memory = memory
        self.nbytes = nbytes
        self.pointer = memory.allocate(nbytes)

    def __del__(self) -> None:
        if hasattr(self, "pointer"):
            self._memory.free(self.pointer)


def storage_calls(module: Any) -> RawCalls:
    """Calls that create storages: of the variant, or of a new memory manager of the variant."""
    if hasattr(module, "make_storage"):
        module.forget()
        return RawCalls(module.make_storage, lambda held: None)
    memory = module.Memory(Driver())
    return RawCalls(lambda size: Storage(memory, size), lambda held: None)


def plain(rows: Iterable[Sequence[int]]) -> list[tuple[int, int, int]]:
    """(kind, slot, bytes) of each operation that Python replays, on one stream."""
    return [(kind, slot, size) for kind, slot, size, _ in rows if kind in (ALLOCATE, FREE)]


class PythonReplay(PythonOperation):
    """A tape replayed by a Python loop, whose cost is included in the times."""

    waits = True

    def __init__(self, pattern: Pattern, calls: Callable[[], Calls]) -> None:
        self._pattern = pattern
        self._make = calls
        self._calls = calls()
        self._tape = plain(pattern.tapes[0].tolist())
        self._slots: list[Any] = [None] * (1 + max(slot for _, slot, _ in self._tape))
        self._fault: str | None = "never replayed"

    def launch(self, stream: int) -> None:
        """Replay once and check that no live allocation is handed out again."""
        del stream
        self._fault = None
        starts: list[int] = []  # start addresses of live allocations, in order
        ends: dict[int, int] = {}
        for kind, slot, size in self._tape:
            if kind == ALLOCATE:
                held = self._calls.allocate(size)
                start = address_of(held)
                at = bisect_left(starts, start)
                before = ends[starts[at - 1]] if at else 0
                after = starts[at] if at < len(starts) else start + size
                if start == 0 or before > start or after < start + size or start in ends:
                    self._fault = f"{size} B: got memory of a live allocation, or none"
                self._slots[slot] = held
                insort(starts, start)
                ends[start] = start + size
                del held
            else:
                start = address_of(self._slots[slot])
                starts.pop(bisect_left(starts, start))
                ends.pop(start, None)
                self._calls.free(self._slots[slot])
                self._slots[slot] = None

    def poison(self) -> None:
        self._fault = "never replayed"

    def check(self) -> str | None:
        return self._fault

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        del stream, count
        once = self._replay()
        times = 1 if self._pattern.fresh else max(1, min(100, int(MIN_TIMING_S / max(once, 1e-7))))
        repeats = REPEATS if once < WARM_UP_S else 1
        seconds = []
        for _ in range(repeats):
            if self._pattern.fresh:
                self._renew()
            seconds.append(sum(self._replay() for _ in range(times)) / times)
        return {"op_time": [brief(statistics.median(seconds) / len(self._tape))]}

    def _renew(self) -> None:
        del self._calls
        gc.collect()
        self._calls = self._make()

    def _replay(self) -> float:
        """Seconds of one replay."""
        allocate, free, slots = self._calls.allocate, self._calls.free, self._slots
        started = time.perf_counter_ns()
        for kind, slot, size in self._tape:
            if kind == ALLOCATE:
                slots[slot] = allocate(size)
            else:
                free(slots[slot])
                slots[slot] = None
        return (time.perf_counter_ns() - started) * 1e-9


def address_of(held: Any) -> int:
    """The address of a pointer, a storage or a tensor."""
    if isinstance(held, int):
        return held
    return int(held.data_ptr() if hasattr(held, "data_ptr") else held.pointer)
