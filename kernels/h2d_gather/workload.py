"""The gather's pools, pairs and output check, set up by every measuring process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from analysis.api.measure import Launcher, Operation, PythonLauncher, flush_rows
from analysis.api.memory import DeviceArray
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import managed, move_to_host, pinned
from kernels.common.draws import pairs_of
from kernels.common.outputs import POISON, wrong_row
from kernels.common.random_bytes import random_bytes

MAX_SMS = 1024


def draw_pairs(case: Case, slots: int, rng: np.random.Generator) -> np.ndarray:
    """Pairs int32 [bs, topk, 2] of (source row below `slots`, destination row 0, 1, 2 ...).

    `permutation` draws distinct source rows, `with_replacement` lets them repeat. FieldError if the
    case requests another draw, or more distinct rows than there are.
    """
    bs, topk, draw = case.number("bs"), case.number("topk"), case["draw"]
    rows = bs * topk
    if rows < 1:
        raise FieldError(f"case {case.id}", "at least one row", rows)
    if draw == "with_replacement":
        sources = rng.integers(0, slots, rows)
    elif draw == "permutation":
        if rows > slots:
            raise FieldError("total_cpu_slots", f"at least {rows} for {case.id}", slots)
        sources = rng.permutation(slots)[:rows]
    else:
        raise FieldError(f"case {case.id}: draw", "permutation or with_replacement", draw)
    return pairs_of(sources.astype(np.int32)).reshape(bs, topk, 2)


class Reference:
    """The expected destination pool [gpu_slots, token_bytes]: the gathered rows, followed by
    poison."""

    def __init__(self, slots: int, row_bytes: int) -> None:
        self.bytes = np.full((slots, row_bytes), POISON, np.uint8)
        self._rows = 0

    def gather(self, src: np.ndarray, sources: np.ndarray) -> None:
        """Set row i to row `sources`[i] of `src`. Poisons only the rows that held data before,
        because the pool is large and most cases are small."""
        rows = len(sources)
        self.bytes[rows : self._rows] = POISON
        np.take(src, sources, axis=0, out=self.bytes[:rows], mode="clip")  # other modes buffer
        self._rows = rows


class Rows:
    """The rows of one case: their pairs on the GPU, and the expected destination."""

    def __init__(self, slots: int, row_bytes: int) -> None:
        self.reference = Reference(slots, row_bytes)
        self.pairs: DeviceArray | None = None
        self.sources = np.empty(0, np.int32)

    def prepare(self, src: np.ndarray, pairs: np.ndarray) -> None:
        self.pairs = DeviceArray(pairs.shape, np.int32, "pairs")
        self.pairs.put(pairs)
        self.sources = pairs[..., 0].ravel()
        self.reference.gather(src, self.sources)


class Workload:
    """Random pools of token_bytes rows, created once per process; indices and reference, created
    once per case."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        row_bytes, slot_bytes = constants["token_bytes"], constants["slot_bytes"]
        for name, size in (("token_bytes", row_bytes), ("slot_bytes", slot_bytes)):
            if size % 16:
                raise FieldError(f"constants.{name}", "a multiple of 16", size)
        if slot_bytes < row_bytes:
            raise FieldError("constants.slot_bytes", f"at least {row_bytes}", slot_bytes)
        self._rng = rng
        self._dst = DeviceArray((constants["total_gpu_slots"], row_bytes), np.uint8, "dst")
        self._src = pinned((constants["total_cpu_slots"], slot_bytes), np.uint8)
        self._src[:] = random_bytes(self._src.nbytes, rng).reshape(self._src.shape)
        self._rows = np.ascontiguousarray(self._src[:, :row_bytes])  # no copy if rows fill slots
        self._managed: np.ndarray | None = None
        self._landed = pinned(self._dst.shape, np.uint8)
        self._sm_launches = DeviceArray((MAX_SMS,), np.uint32, "sm_launches")
        self._drawn = Rows(*self._dst.shape)
        self._in_order = Rows(*self._dst.shape)

    def prepare(self, case: Case) -> None:
        """Draw the rows of `case`. Ceilings move as many rows, the first ones in order."""
        drawn = draw_pairs(case, len(self._src), self._rng)
        rows = drawn.size // 2
        if rows > min(len(self._src), len(self._dst)):
            raise FieldError("total_gpu_slots", f"at least {rows} for {case.id}", len(self._dst))
        self._drawn.prepare(self._rows, drawn)
        in_order = pairs_of(np.arange(rows, dtype=np.int32)).reshape(drawn.shape)
        self._in_order.prepare(self._rows, in_order)

    def bind(self, variant: Variant, module: Any) -> Bound:
        rows = self._in_order if variant.role == "ceiling" else self._drawn
        src = self._managed_src() if "managed" in variant.needs else self._src
        bound = module.bind(src, self._dst, rows.pairs, self._sm_launches)
        operation = Bound(
            bound if variant.is_compiled else PythonLauncher(bound.launch),
            self._dst,
            self._landed,
            rows.reference.bytes,
            self._sm_launches,
        )
        if src is self._managed:
            operation.reset = partial(move_to_host, src)
        else:
            operation.settle = partial(flush_rows, src, rows.sources)
        return operation

    def _managed_src(self) -> np.ndarray:
        if self._managed is None:
            self._managed = managed(self._src.shape, np.uint8)
            self._managed[:] = self._src
        return self._managed


@dataclass
class Bound(Operation):
    """One variant bound to one case."""

    launcher: Launcher
    dst: DeviceArray
    landed: np.ndarray
    expected: np.ndarray
    sm_launches: DeviceArray
    reset: Callable[[int], None] | None = None
    settle: Callable[[], None] | None = None
    sms_used: int = 0

    def poison(self) -> None:
        self.dst.fill(POISON)
        self.sm_launches.fill(0)

    def check(self) -> str | None:
        """None if the whole destination pool equals the CPU reference, else the first
        difference."""
        self.sms_used = int(np.count_nonzero(self.sm_launches.get()))
        return wrong_row(self.dst.get(self.landed), self.expected)

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """sms_used: SMs that ran a block of the checked launch, if the variant counts them."""
        return {"sms_used": [self.sms_used]} if self.sms_used else {}
