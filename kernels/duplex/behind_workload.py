"""A small and a large copy to the device, and the time that the small one waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from analysis.api.measure import Operation
from analysis.api.memory import DeviceArray
from analysis.api.study import Case, Variant, require_known
from kernels.common.host_memory import HostMemory
from kernels.common.outputs import POISON, wrong_byte
from kernels.common.random_bytes import random_bytes

GUARD: Final = 4096
"""Bytes behind each copy on the device that must not change."""
MIB: Final = 2**20
BETWEEN: Final = ("nothing", "kernels")
REPETITIONS: Final = 3


class Piece:
    """Pinned host memory of random bytes, and room for it on the device."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._host = HostMemory("pinned", size)
        self._host.bytes[:] = random_bytes(size, rng)
        self.device = DeviceArray((size + GUARD,), np.uint8, "device")
        self.copy = self.device.pointer, self._host.pointer, size

    def fault(self) -> str | None:
        landed = self.device.get(np.empty(self.device.nbytes, np.uint8))
        return wrong_byte(landed, self._host.bytes)


class Workload:
    """The pieces of all cases of a process: `size` bytes, and `behind_mib` MiB."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        del constants
        self._rng = rng
        self._pieces: dict[int, Piece] = {}

    def prepare(self, case: Case) -> None:
        """FieldError for an unknown word of `between`."""
        self._chunk_bytes = case.number("chunk_mib") * MIB
        self._between = str(case["between"])
        require_known("between", self._between, BETWEEN)
        sizes = case.number("size"), case.number("behind_mib") * MIB
        self._small, self._large = map(self._piece, sizes)

    def _piece(self, size: int) -> Piece:
        if size not in self._pieces:
            self._pieces[size] = Piece(size, self._rng)
        return self._pieces[size]

    def bind(self, variant: Variant, module: Any) -> Operation:
        del variant
        places = self._small.copy, self._large.copy
        bound = module.bind(*places, self._chunk_bytes, self._between == "kernels")
        return Behind(bound, self._small, self._large)


class Behind(Operation):
    """A copy of the small piece that is enqueued behind one of the large piece."""

    def __init__(self, bound: Any, small: Piece, large: Piece) -> None:
        self.launcher = self._bound = bound
        self._small, self._large = small, large

    def poison(self) -> None:
        for piece in (self._small, self._large):
            piece.device.fill(POISON)

    def check(self) -> str | None:
        """None if both pieces are on the device, else the first difference."""
        return self._small.fault() or self._large.fault()

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """Host times of the small copy, alone and behind the large one."""
        del count
        alone, behind = (
            [self._bound.small_seconds(stream, is_behind) for _ in range(REPETITIONS)]
            for is_behind in (False, True)
        )
        return {"small_alone": alone, "small_behind": behind}
