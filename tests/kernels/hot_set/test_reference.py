"""The reference against a plain model of least recently used."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from kernels.hot_set.reference import FREE, HotSet, Step, buffer_of

CONTEXT_ROWS = 24
SLOTS = 8


def steps_of(slots: int) -> st.SearchStrategy[list[list[int]]]:
    """Steps of at most `slots` different rows, some of them several times."""
    rows = st.lists(st.integers(0, CONTEXT_ROWS - 1), min_size=1, max_size=2 * slots)
    return st.lists(rows.filter(lambda ids: len(set(ids)) <= slots), min_size=1, max_size=30)


class Naive:
    """A dictionary in the order of eviction, one row at a time."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.slot_of: OrderedDict[int, int] = OrderedDict()

    def step(self, ids: list[int]) -> tuple[list[int], list[int]]:
        """The missing rows and the evicted ones, in their order."""
        distinct = list(dict.fromkeys(ids))
        missed = [row for row in distinct if row not in self.slot_of]
        taken = [slot for slot in range(self.slots) if slot not in self.slot_of.values()]
        taken = taken[: len(missed)]
        evicted = [row for row in self.slot_of if row not in distinct][: len(missed) - len(taken)]
        taken += [self.slot_of.pop(row) for row in evicted]
        self.slot_of.update(zip(missed, sorted(taken), strict=True))
        for row in sorted(distinct):  # the lower id is evicted first
            self.slot_of.move_to_end(row)
        return missed, evicted


def step(hot_set: HotSet, ids: list[int]) -> Step:
    return hot_set.step(np.array(ids, np.int32))


@given(steps=steps_of(SLOTS))
def test_agrees_with_a_dictionary_in_the_order_of_eviction(steps: list[list[int]]) -> None:
    hot_set, naive = HotSet(SLOTS, CONTEXT_ROWS), Naive(SLOTS)
    for ids in steps:
        found = step(hot_set, ids)
        missed, evicted = naive.step(ids)
        assert found.missed_rows.tolist() == missed
        assert found.evicted_rows.tolist() == evicted
        assert found.slots.tolist() == [naive.slot_of[row] for row in ids]
        assert found.missed_slots.tolist() == [naive.slot_of[row] for row in missed]
        assert hot_set.order.tolist() == list(naive.slot_of.values())


@given(steps=steps_of(SLOTS), slots=st.integers(SLOTS, 12))
def test_every_step_keeps_the_invariants(steps: list[list[int]], slots: int) -> None:
    hot_set = HotSet(slots, CONTEXT_ROWS)
    pool = np.random.default_rng(0).integers(0, 256, (40, 16), dtype=np.uint8)
    places = np.random.default_rng(1).permutation(40)[:CONTEXT_ROWS]
    seen: set[int] = set()
    for number, ids in enumerate(steps):
        before = set(hot_set.rows[hot_set.rows != FREE].tolist())
        found = step(hot_set, ids)
        held = hot_set.rows[hot_set.rows != FREE].tolist()
        seen |= set(ids)
        assert hot_set.steps == number + 1
        assert len(held) == len(set(held)) == min(slots, max(len(before), len(held)))
        assert set(held) == (before | set(ids)) - set(found.evicted_rows.tolist())
        assert len(held) == slots or set(held) == seen, "rows are evicted only for lack of slots"
        assert hot_set.rows[found.slots].tolist() == ids
        assert (hot_set.last_used[found.slots] == number).all()
        assert not set(found.evicted_rows.tolist()) & set(ids)
        assert not set(found.missed_rows.tolist()) & before
        assert ((hot_set.rows == FREE) == (hot_set.last_used == FREE)).all()
        buffer = buffer_of(hot_set, places, pool, poison=7)
        assert (buffer[found.slots] == pool[places[ids]]).all()
        assert (buffer[hot_set.rows == FREE] == 7).all()


@given(steps=steps_of(SLOTS), seed=st.integers(0, 2**32))
def test_the_order_within_a_step_decides_nothing_but_slots(
    steps: list[list[int]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    straight, mixed = HotSet(SLOTS, CONTEXT_ROWS), HotSet(SLOTS, CONTEXT_ROWS)
    for ids in steps:
        one, other = step(straight, ids), step(mixed, rng.permutation(ids).tolist())
        assert one.evicted_rows.tolist() == other.evicted_rows.tolist()
        assert sorted(one.missed_rows) == sorted(other.missed_rows)
        assert straight.rows[straight.order].tolist() == mixed.rows[mixed.order].tolist()


@given(steps=steps_of(SLOTS))
def test_more_slots_never_miss_more(steps: list[list[int]]) -> None:
    small, large = HotSet(SLOTS, CONTEXT_ROWS), HotSet(SLOTS + 3, CONTEXT_ROWS)
    for ids in steps:
        missed = set(step(large, ids).missed_rows.tolist())
        assert missed <= set(step(small, ids).missed_rows.tolist())


def test_of_two_rows_of_one_step_the_lower_id_is_evicted_first() -> None:
    hot_set = HotSet(4, CONTEXT_ROWS)
    step(hot_set, [9, 3, 7])
    step(hot_set, [7])
    found = step(hot_set, [1, 2])
    assert found.evicted_rows.tolist() == [3]
    assert found.missed_slots.tolist() == [1, 3]
    assert step(hot_set, [4, 5]).evicted_rows.tolist() == [9, 7]


def test_a_row_that_comes_twice_is_fetched_once() -> None:
    hot_set = HotSet(2, CONTEXT_ROWS)
    found = step(hot_set, [5, 5, 6, 5])
    assert found.missed_rows.tolist() == [5, 6]
    assert found.slots.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array([], np.int32), "ids: expected at least one row, got 0"),
        (np.array([3, 24, 25]), "ids: expected rows from 0 to 23, got 24"),
        (np.array([3, -1]), "ids: expected rows from 0 to 23, got -1"),
        (np.arange(9), "ids: expected at most 8 different rows, the number of slots, got 9"),
        (np.array([1.0]), r"ids: expected a list of whole numbers, got 'float64 \[1\]'"),
        (np.array([[1]]), r"ids: expected a list of whole numbers, got 'int64 \[1, 1\]'"),
    ],
)
def test_ids_that_no_step_can_take_are_an_error_and_change_nothing(
    ids: np.ndarray, message: str
) -> None:
    hot_set = HotSet(SLOTS, CONTEXT_ROWS)
    step(hot_set, [1, 2])
    before = hot_set.rows.copy(), hot_set.last_used.copy()
    with pytest.raises(FieldError, match=f"^{message}$"):
        hot_set.step(ids)
    assert (hot_set.rows == before[0]).all()
    assert (hot_set.last_used == before[1]).all()
    assert hot_set.steps == 1


@pytest.mark.parametrize(
    ("slots", "context_rows", "field"),
    [(0, 1, "slots"), (1, 0, "context_rows"), (1, 2**31, "context_rows")],
)
def test_a_buffer_of_no_rows_is_an_error(slots: int, context_rows: int, field: str) -> None:
    with pytest.raises(FieldError) as caught:
        HotSet(slots, context_rows)
    assert caught.value.field == field
