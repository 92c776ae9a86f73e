"""The second clock from Python, and the engine's visit to a cell between two of its own."""

from __future__ import annotations

import ctypes
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu
from analysis.measure.cell import Cell, TimeDevice
from analysis.measure.rig import Bound
from analysis.measure.round import Bench, RoundJob
from analysis.toolchain.compile import run
from analysis.toolchain.compilers import Toolchain
from tests.second_clock.cells import CELLS, TOLERANCE, Timed

SOURCE = Path(__file__).parent / "second_clock.cu"
ADDRESS = ctypes.c_void_p
TIMES = {"gpu_time": "device_time", "host_time": "host_time"}
"""Functions of the second clock by metric."""


def build(toolchain: Toolchain, arch: str, folder: Path) -> Path:
    """Compile the second clock into a shared library in `folder`. HotpathError if that fails."""
    out = folder / "second_clock.so"
    libraries = [f"-L{path}" for path in toolchain.libraries]
    options = ["-std=c++17", "-O2", f"-arch={arch}", "-shared", "-Xcompiler=-fPIC"]
    run([str(toolchain.nvcc), *options, str(SOURCE), *libraries, "-o", str(out)])
    return out


class SecondClock:
    """The compiled second clock. Times are in seconds; HotpathError has the program's message."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))  # releases the GIL during calls
        self._library.message.restype = ctypes.c_char_p
        for name in ("flush", *TIMES.values()):
            getattr(self._library, name).restype = ctypes.c_double

    def device_time(self, bound: Bound) -> float:
        """Time between events around one launch in a held stream, after its reset."""
        self._reset(bound)
        return self._call("device_time", *self._addresses(bound), ADDRESS(bound.stream))

    def host_time(self, bound: Bound) -> float:
        """Time of one launch and its wait, after its reset; what the CPU reads is in no cache."""
        self._reset(bound)
        self._call("flush", ADDRESS(bound.stream))
        if bound.variant.host_work and bound.operation.settle:
            bound.operation.settle()
        return self._call("host_time", *self._addresses(bound), ADDRESS(bound.stream))

    def _reset(self, bound: Bound) -> None:
        if bound.operation.reset:
            bound.operation.reset(bound.stream)
            bound.wait()

    def _addresses(self, bound: Bound) -> list[ctypes.c_void_p]:
        """Of the C function that does the work once, and of its argument."""
        launcher: Any = bound.operation.launcher
        return [*map(ADDRESS, launcher.addresses)]

    def _call(self, name: str, *arguments: Any) -> float:
        seconds: float = getattr(self._library, name)(*arguments)
        if seconds < 0:
            raise HotpathError(f"second clock: {self._library.message().decode()}")
        return seconds


@dataclass(frozen=True)
class Compared:
    """Medians of both clocks in seconds; NaN if a cell failed."""

    timed: Timed
    metric: str
    engine_s: float
    second_s: float

    @property
    def ratio(self) -> float:
        """The engine's time over the second clock's."""
        return self.engine_s / self.second_s

    @property
    def agrees(self) -> bool:
        return abs(self.ratio - 1) <= TOLERANCE[self.metric]


class BothClocks(Bench):
    """The engine's visit to a cell, each within two of the second clock."""

    def __init__(self, job: RoundJob, gpus: tuple[Gpu, ...], library: Path) -> None:
        super().__init__(job, gpus, tell=lambda started: None)
        self._clock = SecondClock(library)
        self.second: dict[Cell, dict[str, list[float]]] = {}

    def _take_samples(
        self, cell: Cell, bound: Bound, first_launch_s: float, time_device: TimeDevice | None
    ) -> None:
        metrics = next(one.metrics for one in CELLS if one.is_of(cell))
        count = self.sample_count(cell, first_launch_s)

        def samples(metric: str) -> list[float]:
            """`count` times after two that are discarded."""
            take = getattr(self._clock, TIMES[metric])
            return [take(bound) for _ in range(2 + count)][2:]

        # Half of the samples on either side of the engine's, because hosts drift.
        before = {metric: samples(metric) for metric in metrics}
        super()._take_samples(cell, bound, first_launch_s, time_device)
        self.second[cell] = {metric: before[metric] + samples(metric) for metric in metrics}

    def compared(self, timed: Timed, cell: Cell) -> list[Compared]:
        """The comparison of each metric of a cell. Prints why a cell was not timed."""
        if cell.failure or cell.skipped:
            print(f"{timed.study}/{cell}: {cell.failure or cell.skipped}")
        second = self.second.get(cell, {})
        engine = {name: [v for key, v in cell.values if key == name] for name in timed.metrics}
        return [
            Compared(timed, name, median(engine[name]), median(second.get(name, [])))
            for name in timed.metrics
        ]


def median(values: list[float]) -> float:
    return statistics.median(values) if values else float("nan")
