"""The calibration's pool, row positions and output check."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from analysis.api.measure import Launcher, Operation, flush_rows
from analysis.api.memory import DeviceArray
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import pinned
from kernels.common.outputs import POISON, wrong_byte
from kernels.common.random_bytes import random_bytes

VECTOR = np.dtype("V16")
GUARD = 4096
"""Bytes after the destination that must not change."""


def row_starts(case: Case, pool: int, rng: np.random.Generator) -> np.ndarray:
    """First vectors int32 [rows] of distinct rows at random slots of a pool of `pool` bytes.

    There are as many rows as fit into payload_bytes. Slots are stride_bytes apart (0: row_bytes),
    all shifted by offset_bytes. FieldError if the pool has too few slots or a size is not a
    multiple of 16.
    """
    sizes = {key: case.number(key) for key in ("row_bytes", "stride_bytes", "offset_bytes")}
    for key, size in sizes.items():
        if size % 16:
            raise FieldError(f"case {case.id}: {key}", "a multiple of 16", size)
    row, stride, offset = sizes.values()
    stride = stride or row
    rows, slots = case.payload_bytes // row, (pool - offset) // stride
    if rows > slots or stride < row:
        raise FieldError(f"case {case.id}", f"at most {slots} rows in slots of {stride} B", rows)
    chosen = rng.choice(slots, rows, replace=False)
    return ((chosen * stride + offset) // 16).astype(np.int32)


def gather_reference(pool: np.ndarray, starts: np.ndarray, row: int, out: np.ndarray) -> None:
    """Copy the rows of `row` bytes that start at vectors `starts` of `pool` to `out`, in order."""
    # Copy in the largest pieces to which all rows are aligned: usually far fewer than vectors.
    vectors = math.gcd(row // 16, int(np.gcd.reduce(starts)))
    piece = np.dtype(f"V{16 * vectors}")
    pieces = pool[: len(pool) // vectors * vectors].view(piece)
    within = np.arange(row // piece.itemsize)
    chosen = (starts[:, None] // vectors + within).ravel()
    np.take(pieces, chosen, out=out.view(piece), mode="clip")  # other modes would buffer


class Workload:
    """A pinned pool of random bytes, created once per process; row positions and reference, created
    once per case."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._rng = rng
        pool = constants["pool_bytes"]
        self._pool = pinned((pool // 16,), VECTOR)
        self._pool.view(np.uint8)[:] = random_bytes(pool, rng)
        self._dst: DeviceArray | None = None
        self._starts: DeviceArray | None = None
        self._shape = (0, 0)
        self._launch_shape = (0, 1)
        # Reused between cases, because the first access to new pages dominates the set-up.
        largest = constants["largest_bytes"]
        self._landed = pinned((largest + GUARD,), np.uint8)
        self._reference = np.empty(largest // 16, VECTOR)
        self._expected = self._reference[:0]
        self._read = np.empty((0, 0), np.uint8), np.arange(0)  # table and its rows, see flush_rows

    def prepare(self, case: Case) -> None:
        size = case.payload_bytes
        if size > self._reference.nbytes:
            raise FieldError(f"case {case.id}", f"at most {self._reference.nbytes} B", size)
        self._dst = DeviceArray((size + GUARD,), np.uint8, "dst")
        if "bytes" in case.values:
            self._shape, self._launch_shape = (case.number("bytes") // 16, 1), (0, 1)
            self._starts, self._expected = None, self._pool[: self._shape[0]]
            self._read = self._expected.view(np.uint8)[None, :], np.arange(1)
            return
        starts = row_starts(case, self._pool.nbytes, self._rng)
        row = case.number("row_bytes")
        self._shape = (len(starts), row // 16)
        self._launch_shape = (case.number("blocks"), case.number("in_flight"))
        self._starts = DeviceArray(starts.shape, np.int32, "starts")
        self._starts.put(starts)
        self._expected = self._reference[: size // 16]
        gather_reference(self._pool, starts, row, self._expected)
        places = np.lib.stride_tricks.as_strided(
            self._pool.view(np.uint8), (len(self._pool), row), (VECTOR.itemsize, 1)
        )
        self._read = places, starts

    def bind(self, variant: Variant, module: Any) -> Bound:
        starts = self._starts.pointer if self._starts else 0
        assert self._dst is not None, "prepare comes before bind"
        pointers = (self._pool.ctypes.data, self._dst.pointer, starts)
        launcher = module.Bound(*pointers, *self._shape, *self._launch_shape)
        landed = self._landed[: self._dst.nbytes]
        return Bound(launcher, self._dst, landed, self._expected, partial(flush_rows, *self._read))


@dataclass
class Bound(Operation):
    """One variant bound to one case."""

    launcher: Launcher
    dst: DeviceArray
    landed: np.ndarray
    expected: np.ndarray
    settle: Callable[[], None]

    def poison(self) -> None:
        self.dst.fill(POISON)

    def check(self) -> str | None:
        """None if the rows arrived in order and the guard after them is unchanged."""
        return wrong_byte(self.dst.get(self.landed), self.expected)
