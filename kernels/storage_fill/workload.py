"""A square of floats in GPU memory, the launch that fills it, and the check of every element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from analysis.api.measure import Launcher, Operation, PythonLauncher
from analysis.api.memory import DeviceArray
from analysis.api.study import Case, Variant
from kernels.common.outputs import POISON

GUARD = 256
"""Elements after the square that no fill may change."""


class Workload:
    """One array per case, filled with a value that each process draws at random."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        del constants
        self._value = np.float32(rng.standard_normal())

    def prepare(self, case: Case) -> None:
        self._count = case.number("side") ** 2
        self._array = DeviceArray((self._count + GUARD,), np.float32, "array")

    def bind(self, variant: Variant, module: Any) -> Operation:
        value = float(self._value)
        launcher: Launcher
        if variant.is_compiled:
            launcher = module.Bound(self._array.pointer, self._count, value)
        else:
            launcher = PythonLauncher(module.bind(Square(self._array, self._count), value))
        return Filled(self._array, self._count, self._value, launcher)


class Square:
    """The elements before the guard, for libraries that read __cuda_array_interface__."""

    def __init__(self, array: DeviceArray, count: int) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__ | {"shape": (count,)}


class Filled(Operation):
    """One variant on one array."""

    def __init__(
        self, array: DeviceArray, count: int, value: np.float32, launcher: Launcher
    ) -> None:
        self._array = array
        self._count = count
        self._value = value
        self.launcher = launcher

    def poison(self) -> None:
        self._array.fill(POISON)

    def check(self) -> str | None:
        """None if every element has the value and the elements after the square are unchanged."""
        got = self._array.get()
        square, guard = got[: self._count], got[self._count :].view(np.uint8)
        if not (square == self._value).all():
            i = int(np.argmax(square != self._value))
            return f"element {i}: expected {self._value}, got {square[i]}"
        return None if (guard == POISON).all() else "elements after the square were overwritten"
