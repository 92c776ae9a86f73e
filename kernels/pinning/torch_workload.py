"""Memory that PyTorch pins, how much of it PyTorch takes from CUDA, and the check of a copy."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis.api.measure import Operation, PythonOperation, Skip
from analysis.api.memory import DeviceArray, largest_pool
from analysis.api.study import Case, Variant
from kernels.common.outputs import wrong_byte
from kernels.common.random_bytes import random_bytes


class Workload:
    """The size of each case."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        del constants
        self._rng = rng

    def prepare(self, case: Case) -> None:
        """Skip if the host has too little memory for twice the size."""
        self._size = case.payload_bytes
        if 2 * self._size > (limit := largest_pool()):
            raise Skip(f"pinning {2 * self._size} B: this host allows {limit} B")

    def bind(self, variant: Variant, module: Any) -> Operation:
        del variant
        return TorchPinning(module, self._size, self._rng)


class TorchPinning(PythonOperation):
    """A launch unpins what the last one has pinned, then pins `size` bytes and times itself."""

    waits = True

    def __init__(self, module: Any, size: int, rng: np.random.Generator) -> None:
        self._module, self._size, self._rng = module, size, rng
        self._pinned: Any = None
        self._samples: dict[str, float] = {}

    def launch(self, stream: int) -> None:
        del stream
        self.poison()
        before, begin = self._module.held_bytes(), time.perf_counter()
        self._pinned = self._module.pin(self._size)
        seconds = time.perf_counter() - begin
        held = self._module.held_bytes() - before
        self._samples = {"host_time": seconds, "held_bytes": float(held)}

    def poison(self) -> None:
        """Unpin, so that nothing of an earlier launch is found."""
        self._pinned = None
        self._module.release()

    def check(self) -> str | None:
        """None if all bytes are pinned and arrive on the device, else the first fault."""
        if self._pinned is None or not self._pinned.is_pinned():
            return "expected pinned memory, got none"
        expected = random_bytes(self._size, self._rng)
        memory = self._pinned.numpy()
        memory[:] = expected
        device = DeviceArray(memory.shape, np.uint8, "device")
        device.put(memory)
        return wrong_byte(device.get(np.empty_like(expected)), expected)

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """host_time and held_bytes of the checked launch."""
        del stream, count
        return {name: [value] for name, value in self._samples.items()}
