"""The reference against a dictionary, and the check of a variant's state against the reference."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.toolchain.modules import load_python
from kernels.hot_set.comparison import Contents, Source, difference
from kernels.hot_set.reference import FREE, HotSet, Step, buffer_of
from tests.repository import STUDIES

CONTEXT_ROWS, SLOTS, ROW_BYTES, POISON = 24, 8, 16, 0xA5
RNG = np.random.default_rng(0)
SOURCE = Source(
    RNG.permutation(40)[:CONTEXT_ROWS], RNG.integers(0, 256, (40, ROW_BYTES), np.uint8), POISON
)
IDS = st.lists(st.integers(0, CONTEXT_ROWS - 1), min_size=1, max_size=2 * SLOTS)
STEPS = st.lists(IDS.filter(lambda ids: len(set(ids)) <= SLOTS), min_size=1, max_size=30)


class Naive:
    """A dictionary in the order of eviction, one row at a time."""

    def __init__(self) -> None:
        self.slot_of: OrderedDict[int, int] = OrderedDict()

    def step(self, ids: list[int]) -> tuple[list[int], list[int]]:
        """The missing rows and the evicted ones, in their order."""
        distinct = list(dict.fromkeys(ids))
        missed = [row for row in distinct if row not in self.slot_of]
        taken = [slot for slot in range(SLOTS) if slot not in self.slot_of.values()]
        taken = taken[: len(missed)]
        evicted = [row for row in self.slot_of if row not in distinct][: len(missed) - len(taken)]
        taken += [self.slot_of.pop(row) for row in evicted]
        self.slot_of.update(zip(missed, sorted(taken), strict=True))
        for row in sorted(distinct):  # the lower id is evicted first
            self.slot_of.move_to_end(row)
        return missed, evicted


def contents(hot_set: HotSet, step: Step, seed: int) -> Contents:
    """The state of a variant that has chosen other slots than the reference."""
    to = np.random.default_rng(seed).permutation(SLOTS)
    slot_of = np.argsort(to)
    buffer = buffer_of(hot_set, SOURCE.places, SOURCE.pool, POISON)
    return Contents(
        slot_of[step.slots],
        hot_set.rows[to],
        hot_set.last_used[to],
        slot_of[hot_set.order],
        buffer[to],
        step.missed_rows[::-1],
    )


@given(steps=STEPS, seed=st.integers(0, 99))
def test_the_reference_agrees_with_a_dictionary_and_so_does_any_choice_of_slots(
    steps: list[list[int]], seed: int
) -> None:
    hot_set, naive = HotSet(SLOTS, CONTEXT_ROWS), Naive()
    for ids in steps:
        found = hot_set.step(np.array(ids))
        missed, evicted = naive.step(ids)
        assert found.missed_rows.tolist() == missed
        assert found.evicted_rows.tolist() == evicted
        assert found.slots.tolist() == [naive.slot_of[row] for row in ids]
        assert found.missed_slots.tolist() == [naive.slot_of[row] for row in missed]
        assert hot_set.order.tolist() == list(naive.slot_of.values())
        assert (hot_set.last_used[found.slots] == hot_set.steps - 1).all()
        got = contents(hot_set, found, seed)
        assert difference(hot_set, found, np.array(ids), got, SOURCE) is None


def put(at: Any, value: int) -> Callable[[np.ndarray], np.ndarray]:
    """A copy of an array with another value in one place."""

    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array[at] = value
        return array

    return change


SPOILED: list[tuple[str, Callable[[np.ndarray], np.ndarray], str]] = [
    ("rows", lambda rows: rows[:-1], "slots: expected 8, got [7]"),
    ("rows", put(7, 4), "row 4: expected one slot, got 2"),
    ("rows", put(7, 9), "row 9: expected no slot, got one"),
    ("rows", put(0, FREE), "row 7: expected one slot, got none"),
    ("slots", lambda slots: slots[:-1], "id: expected 3 slots, got [2]"),
    ("slots", put(0, 1), "id 0: expected the slot of row 4, got slot 1, row 6"),
    ("slots", put(2, 8), "id 2: expected the slot of row 6, got slot 8, no row"),
    ("last_used", put(1, 0), "row 6: expected last use in step 1, got 0"),
    ("order", put(1, 3), "order of eviction 1: expected the slot of row 4, got slot 3, row 5"),
    ("order", lambda order: order[:3], "order of eviction: expected 4 slots, got [3]"),
    ("fetched", put(0, 7), "row 7: expected no fetch, got one"),
    ("fetched", put(0, 5), "row 5: expected one fetch, got 2"),
    ("fetched", lambda rows: rows[1:], "row 4: expected one fetch, got none"),
    ("buffer", lambda bytes: bytes ^ (np.arange(16) > 14), "slot 0, row 7, byte 15: expected"),
    ("buffer", put((5, 0), 0), "slot 5, which is free, byte 0: expected 165, got 0"),
]


@pytest.mark.parametrize(
    ("field", "spoil", "message"), SPOILED, ids=lambda it: it[:40] if isinstance(it, str) else None
)
def test_a_difference_names_the_field_the_expected_and_the_actual(
    field: str, spoil: Callable[[np.ndarray], np.ndarray], message: str
) -> None:
    hot_set = HotSet(SLOTS, CONTEXT_ROWS)
    hot_set.step(np.array([7, 6]))
    ids = np.array([4, 5, 6])
    step = hot_set.step(ids)
    buffer = buffer_of(hot_set, SOURCE.places, SOURCE.pool, POISON)
    state = hot_set.rows, hot_set.last_used, hot_set.order, buffer, step.missed_rows
    right = Contents(step.slots, *state)
    assert difference(hot_set, step, ids, right, SOURCE) is None
    wrong = replace(right, **{field: spoil(getattr(right, field))})
    assert str(difference(hot_set, step, ids, wrong, SOURCE)).startswith(message)


WRONG_IDS: dict[str, np.ndarray] = {
    "ids: expected at least one row, got 0": np.array([], np.int32),
    "ids: expected rows from 0 to 23, got 24": np.array([3, 24, 25]),
    "ids: expected rows from 0 to 23, got -1": np.array([3, -1]),
    "ids: expected at most 8 different rows, the number of slots, got 9": np.arange(9),
    "ids: expected a list of whole numbers, got 'int64 [1, 1]'": np.array([[1]]),
}


@pytest.mark.parametrize("message", WRONG_IDS)
def test_ids_that_no_step_can_take_are_an_error_and_change_nothing(message: str) -> None:
    hot_set = HotSet(SLOTS, CONTEXT_ROWS)
    hot_set.step(np.array([1, 2]))
    before = hot_set.rows.tolist(), hot_set.last_used.tolist(), hot_set.steps
    with pytest.raises(FieldError, match=f"^{re.escape(message)}$"):
        hot_set.step(WRONG_IDS[message])
    assert (hot_set.rows.tolist(), hot_set.last_used.tolist(), hot_set.steps) == before


@pytest.mark.parametrize(("slots", "rows"), [(0, 1), (1, 0), (1, 2**31)])
def test_a_buffer_of_no_rows_is_an_error(slots: int, rows: int) -> None:
    with pytest.raises(FieldError, match=r"^(slots|context_rows): expected"):
        HotSet(slots, rows)


def test_a_long_run_repeats_the_steps_after_the_warm_up() -> None:
    made_current: list[int] = []
    bound = SimpleNamespace(advance=lambda stream, index, number: made_current.append(index))
    inputs = SimpleNamespace(trace=SimpleNamespace(warmup_steps=2), shape=SimpleNamespace(steps=3))
    study = STUDIES["hot_set"]
    variant = study.variant("v3_block_per_request")
    steps = load_python(study, "workload").HotSetSteps(bound, inputs, variant)
    for _ in range(9):
        steps.advance(0)
    assert made_current == [0, 1, 2, 3, 4, 2, 3, 4, 2]
