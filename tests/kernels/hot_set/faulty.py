"""A variant in Python, right or with one fault, for tests of the comparison."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from kernels.hot_set.comparison import Contents, Source
from kernels.hot_set.reference import FREE

Fault = Literal[
    "evicts the higher id of a tie",
    "keeps the index entry of an evicted row",
    "overwrites a row that should stay",
    "hands one slot to two rows",
    "copies half of a row",
    "forgets that a hit was used",
    "fetches a row once per appearance",
    "leaves the bytes of the old row",
    "evicts a row that the step uses",
    "fetches a row that is held",
    "fetches a row twice into its slot",
    "reads the row of the next place",
    "hands out slots in another order",
    "counts one step twice",
    "writes behind its slot",
]
FAULTS: tuple[Fault, ...] = get_args(Fault)


class Variant:
    """One request's state, looked up row by row. Missing rows take slots in random order, because
    the comparison leaves their numbers to the variant."""

    def __init__(self, slots: int, row_bytes: int, source: Source, fault: Fault | None) -> None:
        assert source.poison is not None
        self.rows = np.full(slots, FREE, np.int32)
        self.last_used = np.full(slots, FREE, np.int64)
        self.buffer = np.full((slots, row_bytes), source.poison, np.uint8)
        self._index: dict[int, int] = {}
        self._source = source
        self._fault = fault
        self._now = 0
        self._rng = np.random.default_rng(5)

    def step(self, ids: np.ndarray) -> Contents:
        distinct = list(dict.fromkeys(ids.tolist()))
        missed = [row for row in distinct if row not in self._index]
        if self._fault == "fetches a row once per appearance":
            missed = [row for row in ids.tolist() if row not in self._index]
        self._mark([row for row in distinct if row in self._index])
        taken = self._take(len(missed), set(distinct))
        for row, slot in zip(missed, taken, strict=True):
            self._fetch(row, slot)
        slots = np.array([self._index[row] for row in ids.tolist()], np.int32)
        if self._fault == "hands out slots in another order":
            slots = slots[::-1].copy()
        self._now += 2 if self._fault == "counts one step twice" and self._now == 4 else 1
        return Contents(
            *(slots, self.rows.copy(), self.last_used.copy(), None, self.buffer.copy()),
            np.array(self._fetched(missed, distinct), np.int32),
        )

    def _mark(self, hits: list[int]) -> None:
        for row in hits:
            if self._fault != "forgets that a hit was used":
                self.last_used[self._index[row]] = self._now

    def _take(self, count: int, used: set[int]) -> list[int]:
        """Free slots, then those of the oldest rows, which are evicted; in random order."""
        taken = np.flatnonzero(self.rows == FREE)[:count].tolist()
        if self._fault == "evicts a row that the step uses":
            used = set()
        idle = [slot for slot, row in enumerate(self.rows) if row != FREE and row not in used]
        sign = -1 if self._fault == "evicts the higher id of a tie" else 1
        idle.sort(key=lambda slot: (self.last_used[slot], sign * self.rows[slot]))
        if self._fault == "evicts a row that the step uses":
            idle.reverse()
        victims = idle[: count - len(taken)]
        if self._fault == "overwrites a row that should stay" and victims:
            victims[-1] = idle[-1]
        for slot in victims:
            if self._fault != "keeps the index entry of an evicted row":
                del self._index[int(self.rows[slot])]
            self.rows[slot] = FREE
        taken += victims
        if self._fault == "hands one slot to two rows" and len(taken) > 1:
            taken[-1] = taken[-2]
        return [int(slot) for slot in self._rng.permutation(taken)]

    def _fetch(self, row: int, slot: int) -> None:
        self._index[row] = slot
        self.rows[slot] = row
        self.last_used[slot] = self._now
        place = self._source.places[row]
        if self._fault == "reads the row of the next place":
            place = (place + 1) % len(self._source.pool)
        landed = self._source.pool[place]
        if self._fault == "leaves the bytes of the old row" and self._now > 6:
            return
        if self._fault == "copies half of a row":
            landed = landed[: len(landed) // 2]
        self.buffer[slot, : len(landed)] = landed
        if self._fault == "writes behind its slot" and slot + 1 < len(self.rows):
            self.buffer[slot + 1, 0] ^= 0xFF

    def _fetched(self, missed: list[int], distinct: list[int]) -> list[int]:
        if self._fault == "fetches a row that is held":
            return list(dict.fromkeys([*missed, distinct[-1]]))
        if self._fault == "fetches a row twice into its slot":
            return missed + missed[:1]
        return missed
