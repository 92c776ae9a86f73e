"""Buffers and output check of the study of the method. Only cases that copy use GPU memory."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.api.measure import Launcher, Operation, PythonLauncher, Skip, flush
from analysis.api.study import Case, FieldError, Variant
from kernels.common.outputs import POISON, wrong_byte
from kernels.common.random_bytes import random_bytes

if TYPE_CHECKING:
    from analysis.api.memory import DeviceArray

AS_IT_IS, NOBODY, THIS_THREAD, OTHER_CORE = range(1, 5)
ASLEEP_AFTER_S = 0.003
"""Seconds in which an idle core goes to sleep."""
PAIRS = 101
"""Launches by either clock, in turns, whose differences give one sample of Python's cost."""


class Workload:
    """Random bytes in pinned memory and a device buffer of the same size, created for each case."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._writer = constants["writer"]
        if self._writer not in (AS_IT_IS, NOBODY, THIS_THREAD, OTHER_CORE):
            raise FieldError("constants.writer", "1 to 4", self._writer)
        self._rng = rng
        self._src = self._expected = np.empty(0, np.uint8)
        self._dst: DeviceArray | None = None

    def prepare(self, case: Case) -> None:
        """Create the buffers of `case`. Skip if it needs a second core and there is only one."""
        if self._writer == OTHER_CORE and len(os.sched_getaffinity(0)) < 2:
            raise Skip("another core has to write, and here is only one")
        size = case.number("bytes")
        if size == 0:
            self._src = self._expected = np.empty(0, np.uint8)
            self._dst = None
            return
        # Imported here because a machine without a GPU measures the cases without bytes.
        from analysis.api.memory import DeviceArray
        from kernels.common.arrays import pinned

        self._src = pinned((size,), np.uint8)
        self._expected = random_bytes(size, self._rng)
        self._src[:] = self._expected
        self._dst = DeviceArray((size,), np.uint8, "dst")

    def bind(self, variant: Variant, module: Any) -> Bound:
        destination = self._dst.pointer if self._dst else 0
        launcher: Launcher
        if variant.is_compiled:
            launcher = module.Bound(self._src.ctypes.data, destination, self._src.nbytes)
            if variant.clock == "python":
                launcher = CalledFromPython(launcher)
        else:
            launcher = PythonLauncher(module.launch)
        bound = Bound(launcher, module, self._expected, self._dst)
        if self._dst:
            bound.settle = partial(flush, self._src)
        if self._writer != AS_IT_IS:
            bound.reset = partial(write_and_rest, self._src, self._writer)
        return bound


@dataclass
class Bound(Operation):
    """One variant on one buffer. An operation without bytes has no output to check."""

    launcher: Launcher
    module: Any
    expected: np.ndarray
    dst: DeviceArray | None

    def poison(self) -> None:
        if self.dst:
            self.dst.fill(POISON)

    def check(self) -> str | None:
        """None if every byte arrived; without bytes, always."""
        return wrong_byte(self.dst.get(), self.expected) if self.dst else None

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """resolution: the smallest step of the host clock, if the module measures it. python_cost:
        what a launch from Python takes longer than one from C++."""
        if hasattr(self.module, "resolution"):
            return {"resolution": [self.module.resolution()]}
        if isinstance(self.launcher, CalledFromPython):
            return {"python_cost": [self.launcher.cost(stream) for _ in range(count)]}
        return {}


class CalledFromPython(PythonLauncher):
    """A compiled launcher that Python calls and times."""

    def __init__(self, compiled: Launcher) -> None:
        super().__init__(compiled.launch)
        self._compiled = compiled

    def cost(self, stream: int) -> float:
        """Median difference in seconds between host times by Python's clock and by that of C++."""
        return median(
            self._host_s(self, stream) - self._host_s(self._compiled, stream) for _ in range(PAIRS)
        )

    @staticmethod
    def _host_s(launcher: Launcher, stream: int) -> float:
        _, host_s = launcher.time_launch(stream, 0, 0)
        return host_s


def write_and_rest(src: np.ndarray, writer: int, stream: int) -> None:
    """Let `writer` rewrite all of `src` unchanged. The pause has the same length for all writers;
    another core writes before it."""
    del stream
    if writer == OTHER_CORE:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(_write_on, other_core(), src).result()
    time.sleep(ASLEEP_AFTER_S)
    if writer == THIS_THREAD:
        np.add(src, 0, out=src)


def other_core() -> int:
    """A core of this process on which this thread is not running; it must have two or more."""
    here = ctypes.CDLL(None).sched_getcpu()
    return min(os.sched_getaffinity(0), key=lambda core: (core == here, core))


def _write_on(core: int, src: np.ndarray) -> None:
    os.sched_setaffinity(0, {core})  # for this thread only
    np.add(src, 0, out=src)
