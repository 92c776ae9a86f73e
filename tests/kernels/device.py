"""The memory of a device, where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.measure.cell import Operation


class FakeDevice:
    """A device's memory in host memory."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, what: str, gpu: int = 0) -> None:
        self.gpu = gpu
        self.array = np.empty(shape, dtype)
        self.nbytes = self.array.nbytes
        self.pointer = int(self.array.ctypes.data)

    def fill(self, byte: int) -> None:
        self.array[:] = byte

    def put(self, host: np.ndarray) -> None:
        self.array[:] = host

    def get(self, out: np.ndarray) -> np.ndarray:
        out[:] = self.array
        return out


class FakeHost:
    """Plain host memory under the name of any kind."""

    def __init__(self, kind: str, size: int) -> None:
        self.kind, self.bytes = kind, np.empty(size, np.uint8)
        self.pointer = int(self.bytes.ctypes.data)

    def close(self) -> None:
        self.bytes[:] = 0


def outcome(operation: Operation) -> str | None:
    """Error of one launch, or None."""
    operation.poison()
    operation.launch(0)
    return operation.check()
