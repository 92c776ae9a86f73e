"""The pool, the rows of each launch, and the check of the destination."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from analysis.api.measure import Operation, flush_rows
from analysis.api.memory import DeviceArray
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import Bytes
from kernels.common.draws import consecutive_sets, pairs_of
from kernels.common.neighbours import Neighbour, neighbour
from kernels.common.outputs import POISON, wrong_row
from kernels.common.shared_pool import MIB, Shared, cores_for, pool_bytes

from .draws import draw_sets

GUARD_ROWS = 16
"""Rows after the destination that must not change."""

MAX_SMS = 1024
SCALES_AT = 512
"""Offset of the scales in a row, in bytes."""

_CHECKED_ROWS = 8192
"""Rows checked by a thread at a time."""

_SHARED = Shared()
atexit.register(_SHARED.close)  # later, the modules that free memory may be unloaded


class Workload:
    """Rows of token_bytes in slots of slot_bytes. If a slot is 16 bytes smaller than a row, a table
    in device memory has the scales."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._row_bytes, self._slot_bytes = constants["token_bytes"], constants["slot_bytes"]
        if self._row_bytes % 16:
            raise FieldError("constants.token_bytes", "a multiple of 16", self._row_bytes)
        if self._slot_bytes not in (self._row_bytes, self._row_bytes - 16):
            expected = f"{self._row_bytes}, or 16 less"
            raise FieldError("constants.slot_bytes", expected, self._slot_bytes)
        self._largest = constants["largest_pool_mib"] * MIB
        self._rng = rng

    def prepare(self, case: Case) -> Inputs:
        """Skip if the host has no room for the pool, or if the neighbour's package is missing."""
        size = pool_bytes(case, self._largest)
        slots = size // self._slot_bytes
        if slots < 1:
            raise FieldError(f"case {case.id}: pool_mib", "room for a row", size // MIB)
        pool = _SHARED.pool(size, self._largest, self._rng)
        table = Table(pool, slots, self._slot_bytes, self._row_bytes)
        beside = neighbour(str(case["beside"])) if "beside" in case.values else None
        pause_s = case.number("pause_ms") * 1e-3 if "pause_ms" in case.values else 0.0
        return Inputs(table, draw_sets(case, slots, self._rng), self._rng, beside, pause_s)


class Table:
    """The pool as rows: `slots` uint8 [rows, slot_bytes], and `scales` uint8 [rows, 16] if the
    slots do not hold them."""

    def __init__(self, pool: Bytes, rows: int, slot_bytes: int, row_bytes: int) -> None:
        self.slots = pool[: rows * slot_bytes].reshape(rows, slot_bytes)
        self.row_bytes = row_bytes
        self.scales: Bytes | None = None
        self.scales_on_device: DeviceArray | None = None
        lacks = row_bytes - slot_bytes
        if lacks:
            # The scales may be any bytes; those of the pool are random.
            self.scales = pool[: rows * lacks].reshape(rows, lacks)
            self.scales_on_device = DeviceArray(self.scales.shape, np.uint8, "scales")
            self.scales_on_device.put(self.scales)

    def rows(self, sources: np.ndarray) -> Bytes:
        """The expected rows, uint8 [len(sources), row_bytes]."""
        slots = self.slots.take(sources, axis=0, mode="clip")  # other modes buffer
        if self.scales is None:
            return slots
        before, behind = slots[:, :SCALES_AT], slots[:, SCALES_AT:]
        return np.concatenate([before, self.scales[sources], behind], axis=1)


class Launches:
    """The sets of one case in launch order: `sources` int32 [sets, rows], and on the GPU `pairs`
    int32 [sets, rows, 2], where row i of a set goes to row i."""

    def __init__(self, sources: np.ndarray) -> None:
        self.sources = sources
        self.cursor = np.zeros(1, np.int64)  # of all variants; their modules move it on
        self.pairs = DeviceArray((*sources.shape, 2), np.int32, "pairs")
        self.pairs.put(pairs_of(sources))

    @property
    def current(self) -> int:
        """The set of the latest launch."""
        return int(self.cursor[0])

    @property
    def upcoming(self) -> int:
        """The set of the next launch."""
        return (self.current + 1) % len(self.sources)


class Inputs:
    """The inputs of one case. All variants advance through its sets, so that none finds the rows of
    another in a cache."""

    def __init__(
        self,
        table: Table,
        sources: np.ndarray,
        rng: np.random.Generator,
        beside: Neighbour | None,
        pause_s: float,
    ) -> None:
        sets, rows = sources.shape
        self._table = table
        self._beside = beside
        self._pause_s = pause_s
        self._drawn = Launches(sources)
        self._consecutive = Launches(consecutive_sets(rows, sets, len(table.slots), rng))
        self._dst = DeviceArray((rows + GUARD_ROWS, table.row_bytes), np.uint8, "dst")
        self._sm_launches = DeviceArray((MAX_SMS,), np.uint32, "sm_launches")

    def bind(self, variant: Variant, module: Any) -> Operation:
        """Skip if the CPU must pack and has a single core."""
        cpus = cores_for(variant)
        launches = self._consecutive if variant.role == "ceiling" else self._drawn
        _SHARED.use(None)  # frees its scratch memory before more is allocated
        bound = module.bind(
            pool=self._table.slots,
            dst=self._dst,
            pairs=launches.pairs,
            sm_launches=self._sm_launches,
            scales=self._table.scales_on_device,
            cpus=cpus,
            current=launches.cursor,
        )
        return PoolGather(
            *(_SHARED.use(bound), self._table, launches, self._dst, self._sm_launches),
            *(self._beside, self._pause_s),
        )


class PoolGather(Operation):
    """One variant bound to one case; every launch gathers the next set."""

    def __init__(
        self,
        bound: Any,
        table: Table,
        launches: Launches,
        dst: DeviceArray,
        sm_launches: DeviceArray,
        beside: Neighbour | None,
        pause_s: float,
    ) -> None:
        self._bound = self.launcher = bound
        self._table = table
        self._launches = launches
        self._dst = dst
        self._sm_launches = sm_launches
        self._beside = beside
        self._pause_s = pause_s
        self._sms_used = 0

    def poison(self) -> None:
        self._dst.fill(POISON)
        self._sm_launches.fill(0)

    def check(self) -> str | None:
        """None if all rows are those of the last launch's set and the guard is unchanged, else the
        first difference."""
        self._sms_used = int(np.count_nonzero(self._sm_launches.get()))
        landed = self._dst.get(_SHARED.landing(*self._dst.shape))
        sources = self._launches.sources[self._launches.current]
        return _difference(self._table, sources, landed)

    def settle(self) -> None:
        """Flush the rows of the current and the next launch from the CPU's caches; then pause for
        the case's `pause_ms`.

        Threads that pack flush the rows themselves, so that they are awake as in back-to-back
        launches."""
        sets = self._launches.current, self._launches.upcoming
        if not all(self._bound.flush(each) for each in sets):
            flush_rows(self._table.slots, self._launches.sources[list(sets)].ravel())
        time.sleep(self._pause_s)

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """sms_used: SMs that ran a block of the checked launch, if the variant counts them.
        neighbour_slowdown: ratio of the neighbour's time beside the gather to its time alone."""
        found: dict[str, Sequence[float]] = {}
        if self._sms_used:
            found["sms_used"] = [self._sms_used]
        if self._beside is not None:
            slowdowns = [self._beside.slowdown(self.launch, stream) for _ in range(count)]
            found["neighbour_slowdown"] = slowdowns
        return found


def _difference(table: Table, sources: np.ndarray, landed: Bytes) -> str | None:
    """The first byte of `landed` that differs from its source row or, after the rows, from
    poison."""

    def in_rows(start: int) -> str | None:
        expected = table.rows(sources[start : start + _CHECKED_ROWS])
        return wrong_row(landed[start : start + len(expected)], expected, start)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        found = list(threads.map(in_rows, range(0, len(sources), _CHECKED_ROWS)))
    guard = landed[len(sources) :]
    found.append(wrong_row(guard, np.full_like(guard, POISON), len(sources)))
    return next(filter(None, found), None)
