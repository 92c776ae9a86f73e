"""Engram rows in the pool, the rows of each launch, and the check of what was looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.api.measure import Operation, flush_rows
from analysis.api.memory import DeviceArray
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import Bytes
from kernels.common.options import with_options
from kernels.common.shared_pool import pool_bytes

from . import workload
from .draws import draw_sets

VALUES: Final = 256
SCALES: Final = 8
VALUES_PER_SCALE: Final = VALUES // SCALES
NAN: Final = 0x7FC0
INFINITY: Final = 0x7F80
MAGNITUDE: Final = 0x7FFF


class Workload(workload.Workload):
    """Rows of 256 values of fp8 (e4m3) side by side, and behind all of them 8 scales a row, each a
    power of two (e8m0)."""

    def prepare(self, case: Case) -> Inputs:  # type: ignore[override]
        """Skip if the host has no room for the pool."""
        if case.number("row_bytes") != VALUES:
            raise FieldError(f"case {case.id}: row_bytes", str(VALUES), case["row_bytes"])
        size = pool_bytes(case, self._largest)
        pool = workload._SHARED.pool(size, self._largest, self._rng)
        rows = size // (VALUES + SCALES)
        values, scales = pool[: rows * VALUES], pool[rows * VALUES : rows * (VALUES + SCALES)]
        table = Packed(values.reshape(rows, VALUES), scales.reshape(rows, SCALES))
        return Inputs(table, draw_sets(case, rows, self._rng))


class Packed:
    """The pool as rows: `slots` uint8 [rows, 256] and `scales` uint8 [rows, 8]."""

    row_bytes = VALUES + SCALES

    def __init__(self, slots: Bytes, scales: Bytes) -> None:
        self.slots, self.scales = slots, scales

    def rows(self, sources: np.ndarray) -> Bytes:
        """The expected rows, uint8 [len(sources), row_bytes]: values, then scales."""
        return np.concatenate([self.slots[sources], self.scales[sources]], axis=1)


class Multiplied(Packed):
    """The same pool; its rows are values times scales as bf16."""

    row_bytes = 2 * VALUES

    def rows(self, sources: np.ndarray) -> Bytes:
        scales = self.scales[sources].repeat(VALUES_PER_SCALE, axis=1)
        rows: Bytes = products()[scales, self.slots[sources]].view(np.uint8)
        return rows


TABLES: Final = {"sglang": Multiplied, "vllm": Packed}
"""The rows that an operator makes."""


@cache
def products() -> npt.NDArray[np.uint16]:
    """The bits of value times scale as bf16, uint16 [256 scales, 256 values]; NAN for each NaN."""
    code = np.arange(256)
    exponent, fraction = code >> 3 & 15, code & 7
    value = np.where(
        exponent > 0, np.ldexp(1 + fraction / 8, exponent - 7), np.ldexp(fraction / 8, -6)
    )
    value = np.where(code & 127 == 127, np.nan, np.where(code > 127, -value, value))
    scale = np.append(np.ldexp(1.0, code[:-1] - 127), np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        bits = (scale[:, None] * value).astype(np.float32).view(np.uint32)
    rounded = (bits + (0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(bits.view(np.float32)), np.uint16(NAN), rounded)


class Inputs:
    """The inputs of one case. All variants advance through its sets."""

    def __init__(self, table: Packed, sources: np.ndarray) -> None:
        self._table = table
        self._launches = workload.Launches(sources)

    def bind(self, variant: Variant, module: Any) -> Operation:
        workload._SHARED.use(None)
        table = TABLES[variant.options["operator"]](self._table.slots, self._table.scales)
        rows = self._launches.sources.shape[1]
        dst = DeviceArray((rows + workload.GUARD_ROWS, table.row_bytes), np.uint8, "dst")
        bound = with_options(variant, module).bind(
            pool=table.slots,
            scales=table.scales,
            dst=dst,
            pairs=self._launches.pairs,
            current=self._launches.cursor,
        )
        return Lookup(workload._SHARED.use(bound), table, self._launches, dst)


class Lookup(workload.PoolGather):
    """One operator bound to one case; every launch looks up the next set."""

    def __init__(
        self, bound: Any, table: Packed, launches: workload.Launches, dst: DeviceArray
    ) -> None:
        counts = DeviceArray((1,), np.uint32, "sm_launches")  # that no launch counts
        super().__init__(bound, table, launches, dst, counts, None, 0.0)  # type: ignore[arg-type]
        self._has_numbers = isinstance(table, Multiplied)

    def check(self) -> str | None:
        """None if all rows are those of the last launch's set and the guard is unchanged, else the
        first difference. Any NaN is equal to any other."""
        landed = self._dst.get(workload._SHARED.landing(*self._dst.shape))
        if self._has_numbers:
            numbers = landed.view(np.uint16)
            numbers[numbers & MAGNITUDE > INFINITY] = NAN
        sources = self._launches.sources[self._launches.current]
        return workload._difference(self._table, sources, landed)

    def settle(self) -> None:
        """Flush the rows of the current and the next launch from the CPU's caches."""
        sources = self._launches.sources[[self._launches.current, self._launches.upcoming]].ravel()
        flush_rows(self._table.slots, sources)
        flush_rows(self._table.scales, sources)  # type: ignore[arg-type]

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """sort_time: device time of the sort alone, if the operator sorts."""
        seconds = list(self._bound.sort_seconds(stream, count))
        return {"sort_time": seconds} if seconds else {}
