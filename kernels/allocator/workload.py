"""Replays allocation patterns from C++, from Python, and through tensor storages."""

from __future__ import annotations

import gc
import statistics
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, Final, Protocol

import numpy as np

from analysis.api.measure import Operation, Skip
from analysis.api.study import Case, FieldError, Variant

from .patterns import ALLOCATE, FREE, PATTERNS, MissingTrace, Pattern

REPEATS: Final = 3
"""Number of timings per cell with several threads or in Python; the median counts."""

STEPS: Final = 31
"""Maximum number of timed replays by one thread, each after other work; the median counts."""

STEPS_S: Final = 0.02
"""Limit of their total time in seconds, without the other work."""

FRESH_REPEATS: Final = 301
"""Maximum number of timings for a tape that starts with an empty allocator, whose driver time
varies."""

FRESH_S: Final = 0.04
"""Time limit in seconds for the timings of such a tape."""

MIN_TIMING_S: Final = 0.0015
"""Minimum duration of a timing with several threads or in Python, in seconds; the tape is replayed
as often as necessary."""

MAX_WARM_UPS: Final = 60
"""Maximum number of replays before the first timing."""

QUIET_REPLAYS: Final = 12
"""Number of consecutive replays without a driver call that ends the warm-up."""

WARM_UP_S: Final = 0.02
"""Time limit in seconds for the warm-up. A tape that takes longer is timed only once."""

MAX_VARYING_WARM_UPS: Final = 100
VARYING_WARM_UP_S: Final = 0.1
"""The same limits for a pattern that does not repeat exactly. Its warm-up does not end early, since
peak memory is reached only after many replays."""

FULLY_REPORTED: Final = ("p4_final", "torch_caching")
"""Variants whose memory and single operations are reported in addition to times."""

COUNTED_PATTERNS: Final = (
    *("varying_sizes", "transformer_training", "gradient_accumulation", "memory_pressure"),
)
"""Patterns in which the driver calls of every step are reported."""

LATENCY_PATTERNS: Final = ("hot_pair", "random_pair")
FRAGMENTATION_PATTERNS: Final = ("random_pair", "transformer_training")

DIGITS: Final = 5
"""Significant digits of reported values, to limit the size of the results in the repository."""

CREATED_STREAMS: list[int] = []
"""Streams for patterns with several streams; kept until the process ends."""


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


class Reported(Flag):
    """Metrics of a cell in addition to its time."""

    NOTHING = 0
    CALLS = auto()
    MEMORY = auto()
    FRAGMENTATION = auto()
    LATENCIES = auto()


def reported(variant: Variant, pattern: str) -> Reported:
    """The metrics of a variant in a pattern; fewer for most, to limit the size of results."""
    if variant.name not in FULLY_REPORTED:
        is_counted = variant.role == "step" and pattern in COUNTED_PATTERNS
        return Reported.CALLS if is_counted else Reported.NOTHING
    parts = Reported.CALLS | Reported.MEMORY
    parts |= Reported.FRAGMENTATION if pattern in FRAGMENTATION_PATTERNS else Reported.NOTHING
    return parts | (Reported.LATENCIES if pattern in LATENCY_PATTERNS else Reported.NOTHING)


def streams(count: int) -> list[int]:
    """`count` streams, of which the first is the default stream."""
    from cuda.bindings import runtime as cudart

    from analysis.api.memory import cuda

    while len(CREATED_STREAMS) < count - 1:
        flags = cudart.cudaStreamNonBlocking
        CREATED_STREAMS.append(int(cuda(cudart.cudaStreamCreateWithFlags(flags))))
    return [0, *CREATED_STREAMS[: count - 1]]


class CppReplay(Operation):
    """Tapes replayed by the C++ runner. Tests without a GPU pass a memory `source`."""

    waits = True

    def __init__(
        self,
        module: Any,
        pattern: Pattern,
        parts: Reported,
        source: Callable[[], Any] | None = None,
    ) -> None:
        self._module = module
        self._pattern = pattern
        self._parts = parts
        self._on_gpu = source is None
        self._make_source = source or module.DriverSource
        self._streams = streams(pattern.streams) if self._on_gpu else list(range(pattern.streams))
        self._peak_requested = 0
        self._fault: str | None = "never replayed"
        self._allocator: Any = None
        self._runner: Any = None
        self._renew()

    def _renew(self) -> None:
        """Replace the allocator by an empty one. The old one returns its memory first."""
        self._runner = self._allocator = None
        self._allocator = self._module.Allocator(self._make_source())
        self._runner = self._module.Runner(
            self._allocator, self._pattern.tapes, self._streams, on_gpu=self._on_gpu
        )

    def launch(self, stream: int) -> None:
        """Replay once, and check every address against all live allocations.

        The first replay also writes to the allocations. A profiler sees the replay without the
        writes.
        """
        del stream
        writes = self._on_gpu and self._fault is not None
        try:
            self._peak_requested = self._runner.check(writes)
            self._fault = None
        except RuntimeError as error:
            self._fault = str(error)

    def poison(self) -> None:
        self._fault = "never replayed"

    def check(self) -> str | None:
        return self._fault

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        del stream, count
        seconds = self._fresh() if self._pattern.fresh else self._steady()
        values = {"op_time": seconds / self._runner.operations}
        after = self._allocator.statistics()
        reserved, active = after["peak_reserved"], after["peak_active"]
        if Reported.CALLS in self._parts:
            values["driver_calls"] = after["driver_calls"] / self._replays
        if Reported.MEMORY in self._parts:
            values["reserved"] = reserved
        if Reported.FRAGMENTATION in self._parts:
            values["internal_fragmentation"] = 1 - self._peak_requested / active
            values["external_fragmentation"] = 1 - active / reserved
        if Reported.LATENCIES in self._parts:
            latencies = self._runner.latencies(max(1, 20_000 // self._runner.operations))
            names = ("latency_p50", "latency_p99", "latency_p999", "latency_max")
            values |= dict(zip(names, latencies, strict=True))
        return {name: [brief(value)] for name, value in values.items()}

    def _steady(self) -> float:
        """Seconds of a replay by an allocator that has replayed the tape before.

        Each replay by one thread follows other work. Replayed without a pause, a tape of a few
        hundred operations takes 0.7 of this time. Several threads replay without a pause, because
        they would hardly meet otherwise.
        """
        if self._pattern.streams > 1:
            self._renew()  # work of the check may have delayed frees, so that more was reserved
        exactly = self._pattern.repeats_exactly
        replays, limit = (
            (MAX_WARM_UPS, WARM_UP_S) if exactly else (MAX_VARYING_WARM_UPS, VARYING_WARM_UP_S)
        )
        started = time.perf_counter()
        quiet = 0
        for _ in range(replays):
            self._allocator.reset_statistics()
            once = self._runner.run(1)
            quiet = 0 if self._allocator.statistics()["driver_calls"] else quiet + 1
            if (exactly and quiet == QUIET_REPLAYS) or time.perf_counter() - started > limit:
                break
        self._allocator.reset_statistics()
        seconds: list[float]
        if len(self._pattern.tapes) == 1:
            self._replays = max(1, min(STEPS, int(STEPS_S / max(once, 1e-7))))
            seconds = [self._runner.run_after_other_work() for _ in range(self._replays)]
        else:
            times = max(1, min(1000, int(MIN_TIMING_S / max(once, 1e-7))))
            repeats = REPEATS if once < WARM_UP_S else 1
            self._replays = times * repeats
            seconds = [self._runner.run(times) / times for _ in range(repeats)]
        return statistics.median(seconds)

    def _fresh(self) -> float:
        """Seconds of a replay by an allocator without memory."""
        self._replays = 1
        seconds: list[float] = []
        started = time.perf_counter()
        while len(seconds) < FRESH_REPEATS and time.perf_counter() - started < FRESH_S:
            self._renew()
            self._allocator.reset_statistics()
            seconds.append(self._runner.run(1))
        return statistics.median(seconds)


def brief(value: float) -> float:
    """`value` to DIGITS significant digits, or exactly if it is a whole number."""
    return value if float(value).is_integer() else float(f"{value:.{DIGITS}g}")


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


class PythonReplay(Operation):
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
