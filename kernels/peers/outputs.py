"""Destinations of rows, and the first wrong byte in them."""

from __future__ import annotations

import numpy as np

from analysis.api.memory import Bytes, DeviceArray, first_difference, pinned, same_bytes

POISON = 0xA5
GUARD_ROWS = 16
"""Rows after the destination that must not change."""
HOST = -1
"""Place of the host; places of GPUs are their indices among the GPUs in use."""


class Buffers:
    """Host memory that is reused, because touching new pages is slow."""

    def __init__(self) -> None:
        self._held: dict[str, Bytes] = {}

    def of(self, name: str, shape: tuple[int, int]) -> Bytes:
        """Pinned memory uint8 of this shape, the same for every caller with this name."""
        size = shape[0] * shape[1]
        if name not in self._held or self._held[name].size < size:
            self._held[name] = pinned((size,), np.uint8)
        return self._held[name][:size].reshape(shape)


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


def wrong_byte(got: Bytes, expected: Bytes, first_row: int, gpu: int) -> str | None:
    """A description of the first difference in rows that `gpu` wrote, which begin at `first_row` of
    their output."""
    if same_bytes(got, expected):
        return None
    row, byte = divmod(first_difference(got, expected), got.shape[1])
    values = f"expected {expected[row, byte]}, got {got[row, byte]}"
    return f"row {first_row + row}, byte {byte}, by GPU {gpu}: {values}"


def touched(landed: Bytes, begin: int, end: int) -> str | None:
    """A description of the first of the rows [begin, end) that is no longer poison."""
    changed = (landed[begin:end] != POISON).any(axis=1)
    return f"row {begin + int(np.argmax(changed))} was written" if changed.any() else None
