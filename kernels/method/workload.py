"""Buffers and check for the method's own study; GPU memory only for cases that copy something."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.measure.cell import Operation
from analysis.measure.data import random_bytes
from analysis.study import Case, Variant

if TYPE_CHECKING:
    from analysis.measure.memory import DeviceArray

POISON = 0xA5


class Workload:
    """Random bytes in pinned memory and a device buffer of the same size, made for each case."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._rng = rng
        self._src = np.empty(0, np.uint8)
        self._dst: DeviceArray | None = None

    def prepare(self, case: Case) -> None:
        size = case.number("bytes")
        if size == 0:
            self._src, self._dst = np.empty(0, np.uint8), None
            return
        # Imported here because a machine without a GPU measures the cases of no bytes.
        from analysis.measure.memory import DeviceArray, pinned

        self._src = pinned((size,), np.uint8)
        self._src[:] = random_bytes(size, self._rng)
        self._dst = DeviceArray((size,), np.uint8, "dst")

    def bind(self, variant: Variant, module: Any) -> Bound:
        destination = self._dst.pointer if self._dst else 0
        arguments = (self._src.ctypes.data, destination, self._src.nbytes)
        return Bound(module, self._src, self._dst, partial(module.launch, *arguments))


@dataclass
class Bound(Operation):
    """One variant over one buffer. An operation of no bytes has no output to check."""

    module: Any
    src: np.ndarray
    dst: DeviceArray | None
    launch: Callable[[int], None]

    def poison(self) -> None:
        if self.dst:
            self.dst.fill(POISON)

    def check(self) -> str | None:
        """None where every byte arrived; without bytes, where the call returned."""
        if self.dst is None:
            return None
        landed = self.dst.get()
        if np.array_equal(landed, self.src):
            return None
        byte = int(np.argmax(landed != self.src))
        return f"byte {byte}: expected {self.src[byte]}, got {landed[byte]}"

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """resolution: the smallest step of the host clock, where the module can tell."""
        if not hasattr(self.module, "resolution"):
            return {}
        return {"resolution": [self.module.resolution()]}
