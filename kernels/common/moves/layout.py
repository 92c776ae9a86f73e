"""The layout of pieces in one memory, and the check of the bytes that arrived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from analysis.api.study import Case, FieldError, require_known
from kernels.common.arrays import Bytes
from kernels.common.outputs import POISON, wrong_byte

UNASKED: Final = 0x5A
"""Fills the space around and between the pieces of a source. A target with such bytes received too
many."""
GUARD: Final = 4096
"""Bytes before and after all pieces that must not change; also the largest gap."""
LAYOUTS: Final = ("packed", "pitched", "scattered")


@dataclass(frozen=True)
class Side:
    """`count` slots of one memory, `pitch` bytes apart. Piece i of `size` bytes lies in slot
    slots[i], or in slot i if there are no slots."""

    size: int
    count: int
    pitch: int
    slots: np.ndarray | None = None

    @property
    def packed_bytes(self) -> int:
        return self.size * self.count

    @property
    def image_bytes(self) -> int:
        return GUARD + self.pitch * self.count + GUARD

    @property
    def offsets(self) -> np.ndarray:
        """Byte of each piece after the guard: int64 [count]."""
        slots = np.arange(self.count) if self.slots is None else self.slots
        return slots.astype(np.int64) * self.pitch

    def put(self, memory: Bytes, payload: Bytes, around: int = UNASKED) -> Bytes:
        """Make the start of `memory` a source: `payload` in its pieces, bytes `around` elsewhere.
        Returns this part of `memory`."""
        for part in self._around(memory):
            part[:] = around
        self._rows(memory)[self._order, : self.size] = payload.reshape(self.count, self.size)
        return memory[: self.image_bytes]

    def wrong(self, memory: Bytes, payload: Bytes, where: str) -> str | None:
        """The first fault of a target that was POISON before; None if all bytes are right."""
        landed = self._rows(memory)[self._order, : self.size].reshape(-1)
        if wrong := wrong_byte(landed, payload):
            return wrong
        changed = sum(int(np.count_nonzero(part != POISON)) for part in self._around(memory))
        return f"{changed} bytes around the pieces on the {where} changed" if changed else None

    @property
    def _order(self) -> np.ndarray | slice:
        return slice(None) if self.slots is None else self.slots

    def _rows(self, memory: Bytes) -> Bytes:
        return memory[GUARD : self.image_bytes - GUARD].reshape(self.count, self.pitch)

    def _around(self, memory: Bytes) -> tuple[Bytes, Bytes, Bytes]:
        end = self.image_bytes
        return memory[:GUARD], memory[end - GUARD : end], self._rows(memory)[:, self.size :]


def side_of(layout: str, case: Case, rng: np.random.Generator) -> Side:
    """The pieces of a case in order, or, if scattered, in a random one. FieldError for an unknown
    layout or no pieces."""
    require_known("layout", layout, LAYOUTS)
    size, count = case.number("size"), case.number("count")
    for key, number in (("size", size), ("count", count)):
        if number < 1:
            raise FieldError(f"case {case.id}: {key}", "at least 1", number)
    pitch = size if layout == "packed" else size + min(size, GUARD)
    return Side(size, count, pitch, rng.permutation(count) if layout == "scattered" else None)
