"""The operation around a variant's method, and the memory in which pieces arrive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from analysis.api.measure import Operation, PythonLauncher
from analysis.api.memory import DeviceArray
from kernels.common.arrays import Bytes
from kernels.common.host_memory import HostMemory
from kernels.common.outputs import POISON

from .layout import Side

CPU_CALLS: Final = 7
"""Calls whose CPU time counts, where they are short."""
SHORT_CALL_S: Final = 0.001


class Target(Protocol):
    """Memory in which pieces arrive."""

    def poison(self) -> None:
        """Overwrite all of it."""
        ...

    def wrong(self) -> str | None:
        """The first fault, or None if every byte is the expected one."""
        ...


@dataclass(frozen=True)
class OnDevice:
    """Pieces that arrive on the device; `landed` is pinned memory for the check."""

    side: Side
    device: DeviceArray
    expected: Bytes
    landed: Bytes

    def poison(self) -> None:
        self.device.fill(POISON)

    def wrong(self) -> str | None:
        image = self.device.get(self.landed[: self.device.nbytes])
        return self.side.wrong(image, self.expected, "device")


@dataclass(frozen=True)
class OnHost:
    """Pieces that arrive in host memory; `landed` is pinned memory for the check."""

    side: Side
    memory: HostMemory
    expected: Bytes
    landed: Bytes

    def poison(self) -> None:
        self.memory.bytes[: self.side.image_bytes] = POISON

    def wrong(self) -> str | None:
        image = self.memory.bytes[: self.side.image_bytes]
        if self.memory.kind == "write_combined":
            # The CPU reads such memory very slowly, so the copy engine reads it.
            through = DeviceArray(image.shape, np.uint8, "image")
            through.put(image)
            image = through.get(self.landed[: image.nbytes])
        return self.side.wrong(image, self.expected, "host")


class Moving(Operation):
    """A variant's method, and all targets that it has to reach."""

    def __init__(self, method: Any, targets: Sequence[Target], takes_cpu_time: bool) -> None:
        self.method, self.targets, self._takes_cpu_time = method, targets, takes_cpu_time
        is_timed = hasattr(method, "time_launch")
        self.launcher = method if is_timed else PythonLauncher(method.launch)

    def poison(self) -> None:
        for target in self.targets:
            target.poison()

    def check(self) -> str | None:
        return next((wrong for target in self.targets if (wrong := target.wrong())), None)

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """cpu_time: CPU time of all threads of the process until the call returns; and the samples
        of the method, if it takes any."""
        taken = getattr(self.method, "samples", None)
        samples: dict[str, Sequence[float]] = dict(taken(stream)) if taken else {}
        if self._takes_cpu_time:
            (first_s,) = self.method.cpu_times(stream, 1)
            calls = CPU_CALLS if first_s < SHORT_CALL_S else min(count, CPU_CALLS)
            samples["cpu_time"] = self.method.cpu_times(stream, calls)
        return samples
