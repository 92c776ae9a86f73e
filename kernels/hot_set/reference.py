"""Plain CPU reference of the operation: one request's buffer of rows, exact least recently used.

A row's age is the last step that used it. All rows of one step have equal age; of two such rows,
the one with the lower id is evicted first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.api.study import FieldError

FREE = -1
"""Row of a slot that holds none, and its last use."""

_KEY_BITS = 32
"""Bits of the row id in a key that orders rows by last use, then by id."""


@dataclass(frozen=True)
class Step:
    """Outcome of one step.

    slots: slot of every row, in the order of the ids, int32 [ids]
    missed_rows: rows fetched, each once, in order of first appearance, int32 [misses]
    missed_slots: their slots, int32 [misses]
    evicted_rows: evicted rows, oldest first, int32 [evicted]
    """

    slots: np.ndarray
    missed_rows: np.ndarray
    missed_slots: np.ndarray
    evicted_rows: np.ndarray


class HotSet:
    """The buffer of one request: `rows` int32 [slots] and `last_used` int64 [slots] by slot.

    `last_used` counts steps from 0. A free slot has FREE in both.
    """

    def __init__(self, slots: int, context_rows: int) -> None:
        """FieldError if one of the numbers is below 1, or a row id exceeds 31 bits."""
        if slots < 1:
            raise FieldError("slots", "at least 1", slots)
        if not 1 <= context_rows < 2**31:
            raise FieldError("context_rows", "1 to 2147483647", context_rows)
        self.rows = np.full(slots, FREE, np.int32)
        self.last_used = np.full(slots, FREE, np.int64)
        self.steps = 0
        self._slot_of = np.full(context_rows, FREE, np.int32)

    @property
    def order(self) -> np.ndarray:
        """Occupied slots int32 [rows held], in the order of eviction."""
        held = np.flatnonzero(self.rows != FREE)
        return held[np.argsort(self._keys(held))].astype(np.int32)

    def step(self, ids: np.ndarray) -> Step:
        """Make all rows of `ids` resident; mark them as used in this step.

        Missing rows take free slots first, those with the lowest numbers; then the slots of the
        oldest rows that this step does not use. In ascending order, these slots go to the missing
        rows in order of first appearance.

        FieldError if `ids` is empty, has an id outside the context, or more distinct rows than
        slots. The buffer is then unchanged."""
        distinct = self._distinct(ids)
        found = self._slot_of[distinct]
        missed = distinct[found == FREE]
        self.last_used[found[found != FREE]] = self.steps
        free = np.flatnonzero(self.rows == FREE)[: len(missed)]
        victims = self._oldest(len(missed) - len(free))
        evicted = self.rows[victims]
        self._slot_of[evicted] = FREE
        taken = np.sort(np.concatenate([free, victims]))
        self.rows[taken] = missed
        self.last_used[taken] = self.steps
        self._slot_of[missed] = taken
        self.steps += 1
        return Step(self._slot_of[ids], missed, taken.astype(np.int32), evicted)

    def _distinct(self, ids: np.ndarray) -> np.ndarray:
        """The different rows of `ids`, int32, in order of first appearance."""
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise FieldError("ids", "a list of whole numbers", f"{ids.dtype} {list(ids.shape)}")
        if not len(ids):
            raise FieldError("ids", "at least one row", 0)
        context_rows = len(self._slot_of)
        for wrong in ids[(ids < 0) | (ids >= context_rows)][:1]:
            raise FieldError("ids", f"rows from 0 to {context_rows - 1}", int(wrong))
        distinct, first = np.unique(ids, return_index=True)
        if len(distinct) > len(self.rows):
            expected = f"at most {len(self.rows)} different rows, the number of slots"
            raise FieldError("ids", expected, len(distinct))
        return distinct[np.argsort(first)].astype(np.int32)

    def _oldest(self, count: int) -> np.ndarray:
        """Slots of the `count` oldest rows that this step does not use, oldest first."""
        if count < 1:
            return np.empty(0, np.int64)
        idle = np.flatnonzero((self.rows != FREE) & (self.last_used < self.steps))
        keys = self._keys(idle)
        chosen = np.argpartition(keys, count - 1)[:count]
        return idle[chosen[np.argsort(keys[chosen])]]

    def _keys(self, slots: np.ndarray) -> np.ndarray:
        """A number per slot, int64, that orders their rows by last use, then by id."""
        keys: np.ndarray = (self.last_used[slots] << _KEY_BITS) | self.rows[slots]
        return keys


def buffer_of(hot_set: HotSet, places: np.ndarray, pool: np.ndarray, poison: int = 0) -> np.ndarray:
    """Bytes of the whole buffer, uint8 [slots, row_bytes].

    places: pool row of every row of the context, [context_rows]
    pool: uint8 [pool_rows, row_bytes]
    poison: byte of free slots
    """
    buffer = np.full((len(hot_set.rows), pool.shape[1]), poison, np.uint8)
    held = hot_set.rows != FREE
    buffer[held] = pool[places[hot_set.rows[held]]]
    return buffer
