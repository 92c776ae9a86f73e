"""The calibration's pool, row places and check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from analysis.errors import FieldError
from analysis.measure.memory import DeviceArray, first_difference, pinned, same_bytes
from analysis.study import Case, Variant

POISON = 0xA5
VECTOR = np.dtype("V16")
GUARD = 4096
"""Bytes behind the destination that must stay as they were."""


def row_starts(case: Case, total: int, pool: int, rng: np.random.Generator) -> np.ndarray:
    """First vectors int32 [rows] of distinct rows at random slots of a pool of `pool` bytes.

    Slots are stride_bytes apart (0: row_bytes), all shifted by offset_bytes. FieldError where the
    pool has too few slots or a size is no multiple of 16.
    """
    sizes = {key: case.number(key) for key in ("row_bytes", "stride_bytes", "offset_bytes")}
    for key, size in sizes.items():
        if size % 16:
            raise FieldError(f"case {case.id}: {key}", "a multiple of 16", size)
    row, stride, offset = sizes.values()
    stride = stride or row
    rows, slots = total // row, (pool - offset) // stride
    if rows > slots or stride < row:
        raise FieldError(f"case {case.id}", f"at most {slots} rows in slots of {stride} B", rows)
    chosen = rng.choice(slots, rows, replace=False)
    return ((chosen * stride + offset) // 16).astype(np.int32)


class Workload:
    """A pinned pool of random bytes, made once a process; row places and reference, once a case."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._rng = rng
        self._total, pool = constants["total_bytes"], constants["pool_bytes"]
        self._pool = pinned((pool // 16,), VECTOR)
        self._pool.view(np.uint8)[:] = np.frombuffer(rng.bytes(pool), np.uint8)
        self._dst: DeviceArray | None = None
        self._starts: DeviceArray | None = None
        self._shape = (0, 0)
        self._launch_shape = (0, 1)
        self._expected = np.empty(0, VECTOR)

    def prepare(self, case: Case) -> None:
        self._dst = DeviceArray((case.payload_bytes + GUARD,), np.uint8, "dst")
        if "bytes" in case.values:
            self._shape, self._launch_shape = (case.number("bytes") // 16, 1), (0, 1)
            self._starts, self._expected = None, self._pool[: self._shape[0]]
            return
        starts = row_starts(case, self._total, self._pool.nbytes, self._rng)
        vectors = case.number("row_bytes") // 16
        self._shape = (len(starts), vectors)
        self._launch_shape = (case.number("blocks"), case.number("in_flight"))
        self._starts = DeviceArray(starts.shape, np.int32, "starts")
        self._starts.put(starts)
        self._expected = self._pool[starts[:, None] + np.arange(vectors)]

    def bind(self, variant: Variant, module: Any) -> Operation:
        starts = self._starts.pointer if self._starts else 0
        assert self._dst is not None, "prepare comes before bind"
        pointers = (self._pool.ctypes.data, self._dst.pointer, starts)
        launch = partial(module.launch, *pointers, *self._shape, *self._launch_shape)
        return Operation(launch, self._dst, self._expected)


@dataclass
class Operation:
    """One variant bound to one case."""

    launch: Callable[[int], None]
    dst: DeviceArray
    expected: np.ndarray
    reset: None = None

    def poison(self) -> None:
        self.dst.fill(POISON)

    def check(self) -> str | None:
        """None where the rows arrived in order and the guard behind them is untouched."""
        landed = self.dst.get()
        size = self.expected.nbytes
        expected = np.ascontiguousarray(self.expected).view(np.uint8).ravel()
        if not same_bytes(landed[:size], expected):
            byte = first_difference(landed[:size], expected)
            return f"byte {byte}: expected {expected[byte]}, got {landed[byte]}"
        behind = landed[size:]
        if np.any(behind != POISON):
            return f"byte {size + int(np.argmax(behind != POISON))} behind the rows changed"
        return None

    def facts(self) -> dict[str, float]:
        return {}
