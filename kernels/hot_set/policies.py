"""Policies of eviction, simulated on the CPU for one request: which rows make room.

Under every policy, a step needs all its rows at once, and no row of the step may be evicted. A
policy decides only which rows are fetched again later, so their number is its cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import numpy as np

from analysis.api.study import require_known

from .reference import FREE, HotSet

NEVER = 2**31 - 1
"""Step of the next use of a row that is not used again."""


def fetched_rows(policy: str, ids: np.ndarray, slots: int, context_rows: int) -> np.ndarray:
    """Rows fetched in each step from an empty buffer on, int64 [steps]. FieldError unless `policy`
    is one of POLICIES.

    ids: rows of the context, int [steps, ids]
    """
    require_known("policy", policy, POLICIES)
    if policy == "lru":
        reference = HotSet(slots, context_rows)
        return np.array([len(reference.step(step).missed_rows) for step in ids])
    simulated = _CHOOSING[policy](ids, slots, context_rows)
    return np.array([simulated.step(number) for number in range(len(ids))])


class Policy(ABC):
    """A buffer whose evicted rows a policy chooses. `ids`: [steps, ids], also of steps to come."""

    def __init__(self, ids: np.ndarray, slots: int, context_rows: int) -> None:
        self._ids = ids
        self._rows = np.full(slots, FREE, np.int64)
        self._slot_of = np.full(context_rows, FREE, np.int64)

    def step(self, number: int) -> int:
        """Do this step; return the number of rows fetched. Steps come in their order."""
        distinct = np.unique(self._ids[number])
        found = self._slot_of[distinct]
        missed = distinct[found == FREE]
        idle = self._rows != FREE
        idle[found[found != FREE]] = False
        taken = np.flatnonzero(self._rows == FREE)[: len(missed)]
        if victims := len(missed) - len(taken):
            chosen = self._evicted(idle, victims)
            self._slot_of[self._rows[chosen]] = FREE
            taken = np.concatenate([taken, chosen])
        self._rows[taken] = missed
        self._slot_of[missed] = taken
        self._use(self._slot_of[self._ids[number]], number)
        return len(missed)

    @abstractmethod
    def _evicted(self, idle: np.ndarray, count: int) -> np.ndarray:
        """`count` of the slots that `idle`, bool [slots], marks: they make room."""

    @abstractmethod
    def _use(self, slots: np.ndarray, number: int) -> None:
        """Note that step `number` uses the rows of these slots, in the order of its ids."""


class Clock(Policy):
    """A hand goes round the slots. A row that was used since the hand last passed is spared once;
    a row of the step itself is passed over."""

    def __init__(self, ids: np.ndarray, slots: int, context_rows: int) -> None:
        super().__init__(ids, slots, context_rows)
        self._is_used = np.zeros(slots, bool)
        self._hand = 0

    def _evicted(self, idle: np.ndarray, count: int) -> np.ndarray:
        slots = len(self._rows)
        turn = (self._hand + np.arange(slots)) % slots
        turn = turn[idle[turn]]
        chosen: np.ndarray = turn[~self._is_used[turn]][:count]
        if len(chosen) < count:  # the hand goes round once more
            self._is_used[turn] = False
            spared = turn[~np.isin(turn, chosen)]
            chosen = np.concatenate([chosen, spared[: count - len(chosen)]])
        else:
            passed = turn[: int(np.flatnonzero(turn == chosen[-1])[0])]
            self._is_used[passed] = False
        self._hand = (int(chosen[-1]) + 1) % slots
        return chosen

    def _use(self, slots: np.ndarray, number: int) -> None:
        self._is_used[slots] = True


class Random(Policy):
    """Any rows, from a fixed seed."""

    def __init__(self, ids: np.ndarray, slots: int, context_rows: int) -> None:
        super().__init__(ids, slots, context_rows)
        self._rng = np.random.default_rng(0)

    def _evicted(self, idle: np.ndarray, count: int) -> np.ndarray:
        return self._rng.choice(np.flatnonzero(idle), count, replace=False)

    def _use(self, slots: np.ndarray, number: int) -> None:
        pass  # does not affect the choice


class Optimum(Policy):
    """Belady's: the rows whose next use is farthest away. It knows the steps to come; no policy
    fetches fewer rows."""

    def __init__(self, ids: np.ndarray, slots: int, context_rows: int) -> None:
        super().__init__(ids, slots, context_rows)
        self._next_uses = _next_uses(ids, context_rows)
        self._next_use = np.full(slots, NEVER, np.int64)

    def _evicted(self, idle: np.ndarray, count: int) -> np.ndarray:
        slots = np.flatnonzero(idle)
        farthest: np.ndarray = slots[np.argpartition(-self._next_use[slots], count - 1)[:count]]
        return farthest

    def _use(self, slots: np.ndarray, number: int) -> None:
        self._next_use[slots] = self._next_uses[number]


def _next_uses(ids: np.ndarray, context_rows: int) -> np.ndarray:
    """Step of each id's next use, or NEVER, int64 [steps, ids]."""
    coming = np.full(context_rows, NEVER, np.int64)
    uses = np.empty(ids.shape, np.int64)
    for number in reversed(range(len(ids))):
        uses[number] = coming[ids[number]]
        coming[ids[number]] = number
    return uses


_CHOOSING: Final[dict[str, type[Policy]]] = {"clock": Clock, "random": Random, "belady": Optimum}

POLICIES: Final = ("lru", *_CHOOSING)
"""Names of all policies; `lru` is the reference."""
