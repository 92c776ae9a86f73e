"""Poison of outputs, and their comparison with the expected bytes."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kernels.common.parallel import in_parallel

POISON: Final = 0xA5
"""Byte that fills an output and its guard before an operation, so that missing bytes are found."""

_libc = ctypes.CDLL(None)
_libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def same_bytes(got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> bool:
    """Whether two C-contiguous arrays hold the same bytes; compares large arrays in parallel."""
    size = expected.nbytes
    if got.nbytes != size:
        return False

    def is_same(part: slice) -> bool:
        length = min(part.stop, size) - part.start
        ends = got.ctypes.data + part.start, expected.ctypes.data + part.start
        return bool(_libc.memcmp(*ends, length) == 0)

    return all(in_parallel(is_same, size, 1))


def first_difference(got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> int:
    """Byte offset of the first difference between two arrays that are known to differ."""
    return int(np.argmax(got.view(np.uint8).ravel() != expected.view(np.uint8).ravel()))


def wrong_byte(landed: npt.NDArray[np.uint8], expected: npt.NDArray[Any]) -> str | None:
    """The first byte that differs from `expected`, or in the guard after it from POISON, as a
    message; None if there is none. `landed` is at least as long as `expected`."""
    size = expected.nbytes
    wanted, guard = expected.view(np.uint8).ravel(), landed[size:]
    if not same_bytes(landed[:size], wanted):
        byte = first_difference(landed[:size], wanted)
        return f"byte {byte}: expected {wanted[byte]}, got {landed[byte]}"
    if np.any(guard != POISON):
        return f"byte {size + int(np.argmax(guard != POISON))}, after the output, was overwritten"
    return None


def wrong_row(
    got: npt.NDArray[np.uint8], expected: npt.NDArray[np.uint8], first_row: int = 0
) -> str | None:
    """The first byte that differs between two arrays [rows, row_bytes], as a message; None if there
    is none. `first_row` is the number of their first row in the output."""
    if same_bytes(got, expected):
        return None
    row, byte = divmod(first_difference(got, expected), got.shape[1])
    values = f"expected {expected[row, byte]}, got {got[row, byte]}"
    return f"destination row {first_row + row}, byte {byte}: {values}"
