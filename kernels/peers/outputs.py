"""Destinations of rows, and the first wrong byte in them."""

from __future__ import annotations

import numpy as np

from analysis.api.memory import DeviceArray
from kernels.common.arrays import Bytes
from kernels.common.outputs import POISON
from kernels.common.shared_pool import Buffers

GUARD_ROWS = 16
"""Rows after the destination that must not change."""
HOST = -1
"""Place of the host; places of GPUs are their indices among the GPUs in use."""


class Output:
    """Rows uint8 [rows + GUARD_ROWS, row_bytes] in memory of a GPU or of the host."""

    def __init__(self, place: int, rows: int, row_bytes: int, buffers: Buffers) -> None:
        shape = rows + GUARD_ROWS, row_bytes
        self.shape, self._buffers = shape, buffers
        self._array = None if place == HOST else DeviceArray(shape, np.uint8, "dst", place)
        host = buffers.of("dst", shape)
        self.pointer = self._array.pointer if self._array else int(host.ctypes.data)

    def fill(self, byte: int) -> None:
        if self._array:
            self._array.fill(byte)
        else:
            self._buffers.of("dst", self.shape)[:] = byte

    def landed(self) -> Bytes:
        """The present content, valid until the next output is read."""
        buffer = self._buffers.of("dst", self.shape)
        return self._array.get(buffer) if self._array else buffer


def touched(landed: Bytes, begin: int, end: int) -> str | None:
    """A description of the first of the rows [begin, end) that is no longer poison."""
    changed = (landed[begin:end] != POISON).any(axis=1)
    return f"row {begin + int(np.argmax(changed))} was written" if changed.any() else None
