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
    pool = np.random.default_rng(0).integers(0, 256, (40, 16), dtype=np.uint8)
    places = np.random.default_rng(1).permutation(40)[:CONTEXT_ROWS]
    for ids in steps:
        found = step(hot_set, ids)
        missed, evicted = naive.step(ids)
        assert found.missed_rows.tolist() == missed
        assert found.evicted_rows.tolist() == evicted
        assert found.slots.tolist() == [naive.slot_of[row] for row in ids]
        assert found.missed_slots.tolist() == [naive.slot_of[row] for row in missed]
        assert hot_set.order.tolist() == list(naive.slot_of.values())
        assert (hot_set.last_used[found.slots] == hot_set.steps - 1).all()
        buffer = buffer_of(hot_set, places, pool, poison=7)
        assert (buffer[found.slots] == pool[places[ids]]).all()
        assert (buffer[hot_set.rows == FREE] == 7).all()


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
