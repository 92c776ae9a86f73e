"""Replays allocation patterns by the C++ runner."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Flag, auto
from typing import Any, Final

from analysis.api.measure import PythonOperation

from .patterns import Pattern

REPEATS: Final = 3
"""Number of timings per cell with several threads or in Python; the median counts."""

REPLAYS: Final = 15
"""Maximum number of timed replays by one thread, each after other work; the median counts."""

REPLAYS_S: Final = 0.008
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

DIGITS: Final = 5
"""Significant digits of reported values, to limit the size of the results in the repository."""

CREATED_STREAMS: list[int] = []
"""Streams for patterns with several streams; kept until the process ends."""


class Reported(Flag):
    """Metrics of a cell in addition to its time."""

    NOTHING = 0
    CALLS = auto()
    MEMORY = auto()
    FRAGMENTATION = auto()
    LATENCIES = auto()


def streams(count: int) -> list[int]:
    """`count` streams, of which the first is the default stream."""
    from cuda.bindings import runtime as cudart

    from analysis.api.memory import cuda

    while len(CREATED_STREAMS) < count - 1:
        flags = cudart.cudaStreamNonBlocking
        CREATED_STREAMS.append(int(cuda(cudart.cudaStreamCreateWithFlags(flags))))
    return [0, *CREATED_STREAMS[: count - 1]]


class CppReplay(PythonOperation):
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

        Each replay by one thread follows other work: replayed without a pause, a tape of a few
        hundred operations takes only 0.7 of this time. Several threads replay without a pause, so
        that they meet.
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
            self._replays = max(1, min(REPLAYS, int(REPLAYS_S / max(once, 1e-7))))
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
