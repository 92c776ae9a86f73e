"""Policies of eviction, simulated on the CPU for one request: which rows make room.

Under every policy, a step needs all its rows at once, and no row of the step may be evicted. A
policy decides only which rows are fetched again later, so their number is its cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import numpy as np

from analysis.api.study import require_known

from .reference import FREE, HotSet, Step

NEVER = 2**31 - 1
"""Step of the next use of a row that is not used again."""


def fetched_rows(policy: str, ids: np.ndarray, slots: int, context_rows: int) -> np.ndarray:
    """Rows fetched in each step from an empty buffer on, int64 [steps]. FieldError unless `policy`
    is one of POLICIES.

    ids: rows of the context, int [steps, ids]
    """
    require_known("policy", policy, POLICIES)
    buffer: HotSet | Policy
    if policy == "lru":
        buffer = HotSet(slots, context_rows)
    elif policy == "belady":
        buffer = Optimum(slots, context_rows, ids)
    else:
        buffer = _WITHOUT_FORESIGHT[policy](slots, context_rows)
    return np.array([len(buffer.step(step).missed_rows) for step in ids])


class Policy(ABC):
    """A buffer whose evicted rows a policy chooses: `rows` int32 [slots] by slot, or FREE."""

    def __init__(self, slots: int, context_rows: int) -> None:
        self.rows = np.full(slots, FREE, np.int32)
        self._slot_of = np.full(context_rows, FREE, np.int32)

    def step(self, ids: np.ndarray) -> Step:
        """Make all rows of `ids` resident. Missing rows take free slots, lowest number first, then
        the slots that the policy chooses. In this order, the slots go to the rows in ascending
        order."""
        distinct = np.unique(ids)
        found = self._slot_of[distinct]
        missed = distinct[found == FREE].astype(np.int32)
        idle = self.rows != FREE
        idle[found[found != FREE]] = False
        taken = np.flatnonzero(self.rows == FREE)[: len(missed)]
        evicted = np.empty(0, np.int32)
        if victims := len(missed) - len(taken):
            chosen = self._evicted(idle, victims)
            evicted = self.rows[chosen]
            self._slot_of[evicted] = FREE
            taken = np.concatenate([taken, chosen])
        self.rows[taken] = missed
        self._slot_of[missed] = taken
        slots = self._slot_of[ids]
        self._use(slots)
        return Step(slots, missed, taken.astype(np.int32), evicted)

    @abstractmethod
    def _evicted(self, idle: np.ndarray, count: int) -> np.ndarray:
        """`count` of the slots that `idle`, bool [slots], marks: they make room."""

    @abstractmethod
    def _use(self, slots: np.ndarray) -> None:
        """Note that the step uses the rows of these slots, in the order of its ids."""


class Clock(Policy):
    """A hand goes round the slots. A row that was used since the hand last passed is spared once;
    a row of the step itself is passed over."""

    def __init__(self, slots: int, context_rows: int) -> None:
        super().__init__(slots, context_rows)
        self._is_used = np.zeros(slots, bool)
        self._hand = 0

    def _evicted(self, idle: np.ndarray, count: int) -> np.ndarray:
        slots = len(self.rows)
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

    def _use(self, slots: np.ndarray) -> None:
        self._is_used[slots] = True


class Random(Policy):
    """Any rows, from a fixed seed."""

    def __init__(self, slots: int, context_rows: int) -> None:
        super().__init__(slots, context_rows)
        self._rng = np.random.default_rng(0)

    def _evicted(self, idle: np.ndarray, count: int) -> np.ndarray:
        return self._rng.choice(np.flatnonzero(idle), count, replace=False)

    def _use(self, slots: np.ndarray) -> None:
        pass  # does not affect the choice


class Optimum(Policy):
    """Belady's: the rows whose next use is farthest away. It knows the steps to come; no policy
    fetches fewer rows."""

    def __init__(self, slots: int, context_rows: int, ids: np.ndarray) -> None:
        """ids: of all steps, [steps, ids]"""
        super().__init__(slots, context_rows)
        self._next_uses = iter(_next_uses(ids, context_rows))
        self._next_use = np.full(slots, NEVER, np.int64)

    def _evicted(self, idle: np.ndarray, count: int) -> np.ndarray:
        slots = np.flatnonzero(idle)
        farthest: np.ndarray = slots[np.argpartition(-self._next_use[slots], count - 1)[:count]]
        return farthest

    def _use(self, slots: np.ndarray) -> None:
        self._next_use[slots] = next(self._next_uses)


def _next_uses(ids: np.ndarray, context_rows: int) -> np.ndarray:
    """Step of each id's next use, or NEVER, int64 [steps, ids]."""
    coming = np.full(context_rows, NEVER, np.int64)
    uses = np.empty(ids.shape, np.int64)
    for number in reversed(range(len(ids))):
        uses[number] = coming[ids[number]]
        coming[ids[number]] = number
    return uses


_WITHOUT_FORESIGHT: Final[dict[str, type[Policy]]] = {"clock": Clock, "random": Random}

POLICIES: Final = ("lru", *_WITHOUT_FORESIGHT, "belady")
"""Names of all policies; `lru` is the reference."""
