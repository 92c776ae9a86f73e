"""Policies of eviction against plain models, and the optimum against all choices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from kernels.hot_set.policies import POLICIES, fetched_rows
from kernels.hot_set.traces import Shape, draw_trace

CONTEXT_ROWS = 7


def steps_of(slots: int, longest: int) -> st.SearchStrategy[list[list[int]]]:
    """Steps of `slots` ids, some of them the same."""
    ids = st.lists(st.integers(0, CONTEXT_ROWS - 1), min_size=slots, max_size=slots)
    return st.lists(ids, min_size=1, max_size=longest)


def fetched(policy: str, steps: list[list[int]], slots: int) -> list[int]:
    found: list[int] = fetched_rows(policy, np.array(steps), slots, CONTEXT_ROWS).tolist()
    return found


def fewest(steps: list[list[int]], slots: int) -> int:
    """Rows fetched by the best of all possible choices."""
    needed = [frozenset(ids) for ids in steps]

    @cache
    def from_step(number: int, held: frozenset[int]) -> int:
        if number == len(needed):
            return 0
        missed = len(needed[number] - held)
        return missed + min(from_step(number + 1, kept) for kept in outcomes(number, held))

    def outcomes(number: int, held: frozenset[int]) -> Iterator[frozenset[int]]:
        idle = sorted(held - needed[number])
        room = min(len(idle), slots - len(needed[number]))
        return (needed[number] | set(kept) for kept in combinations(idle, room))

    return from_step(0, frozenset())


class PlainClock:
    """A hand that goes from slot to slot."""

    def __init__(self, slots: int) -> None:
        self.rows: list[int | None] = [None] * slots
        self.is_used = [False] * slots
        self.hand = 0

    def step(self, ids: list[int]) -> int:
        missed = sorted(set(ids) - set(self.rows))
        for row, slot in zip(missed, self._taken(len(missed), set(ids)), strict=True):
            self.rows[slot] = row
        for row in ids:
            self.is_used[self.rows.index(row)] = True
        return len(missed)

    def _taken(self, count: int, step: set[int]) -> list[int]:
        taken = [slot for slot, row in enumerate(self.rows) if row is None][:count]
        while len(taken) < count:
            slot, self.hand = self.hand, (self.hand + 1) % len(self.rows)
            if self.rows[slot] is None or self.rows[slot] in step or slot in taken:
                continue
            if not self.is_used[slot]:
                taken.append(slot)
            self.is_used[slot] = False
        return taken


@settings(deadline=None)
@given(steps=steps_of(2, 9), slots=st.integers(2, 4))
def test_the_optimum_is_the_best_of_all_choices(steps: list[list[int]], slots: int) -> None:
    assert sum(fetched("belady", steps, slots)) == fewest(steps, slots)


@settings(deadline=None, max_examples=500)
@given(steps=steps_of(3, 30), slots=st.integers(3, 5))
def test_the_clock_agrees_with_a_hand_that_goes_from_slot_to_slot(
    steps: list[list[int]], slots: int
) -> None:
    plain = PlainClock(slots)
    assert fetched("clock", steps, slots) == [plain.step(ids) for ids in steps]


@settings(deadline=None)
@given(steps=steps_of(3, 30), slots=st.integers(3, 5))
def test_every_policy_holds_the_rows_of_its_last_step(steps: list[list[int]], slots: int) -> None:
    twice = [ids for ids in steps for _ in range(2)]
    fetches = {policy: fetched(policy, twice, slots) for policy in POLICIES}
    for counts in fetches.values():
        assert not any(counts[1::2])
        assert counts[0] == len(set(steps[0]))
    assert min(map(sum, fetches.values())) == sum(fetches["belady"])


def test_policies_differ_where_a_neighbourhood_moves() -> None:
    shape = Shape(requests=1, topk=64, slots=128, context_rows=4096, steps=200)
    ids = draw_trace("kept_0.8", shape, np.random.default_rng(0)).ids[:, 0]
    found = {policy: fetched_rows(policy, ids, 128, 4096).sum() for policy in POLICIES}
    assert found["belady"] < 0.95 * min(found["lru"], found["clock"], found["random"])
    assert len(set(found.values())) == len(found)


def test_an_unknown_policy_is_an_error() -> None:
    with pytest.raises(FieldError, match=r"^policy: expected one of \['lru', .*, got 'newest'$"):
        fetched("newest", [[0]], 1)
