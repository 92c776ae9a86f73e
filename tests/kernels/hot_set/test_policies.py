"""Policies of eviction against plain models, and the workload that simulates them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.study import Case
from analysis.toolchain.modules import load_python
from kernels.hot_set.policies import POLICIES, fetched_rows
from tests.repository import STUDIES

STUDY = STUDIES["hot_set"]
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


def fetched_by_hand(steps: list[list[int]], slots: int) -> Iterator[int]:
    """Rows fetched where a hand goes from slot to slot."""
    rows: list[int | None] = [None] * slots
    is_used, hand = [False] * slots, 0
    for ids in steps:
        missed = sorted(set(ids) - set(rows))
        taken = [slot for slot, row in enumerate(rows) if row is None][: len(missed)]
        while len(taken) < len(missed):
            slot, hand = hand, (hand + 1) % slots
            if rows[slot] is not None and rows[slot] not in ids and slot not in taken:
                if not is_used[slot]:
                    taken.append(slot)
                is_used[slot] = False
        for row, slot in zip(missed, taken, strict=True):
            rows[slot] = row
        for row in ids:
            is_used[rows.index(row)] = True
        yield len(missed)


@given(steps=steps_of(2, 9), slots=st.integers(2, 4))
def test_the_optimum_is_the_best_of_all_choices(steps: list[list[int]], slots: int) -> None:
    least = fewest(steps, slots)
    assert sum(fetched("belady", steps, slots)) == least
    assert all(sum(fetched(policy, steps, slots)) >= least for policy in POLICIES)


@settings(max_examples=500)
@given(steps=steps_of(3, 30), slots=st.integers(3, 5))
def test_the_clock_agrees_with_a_hand_that_goes_from_slot_to_slot(
    steps: list[list[int]], slots: int
) -> None:
    assert fetched("clock", steps, slots) == [*fetched_by_hand(steps, slots)]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_check_counts_steps_and_knows_the_optimum(policy: str) -> None:
    case = Case({"topk": 64, "slots": 128, "trace": "kept_0.8"}, 0, "default")
    workload = load_python(STUDY, "policy_workload").Workload
    inputs = workload(STUDY.constants, np.random.default_rng(0)).prepare(case)

    def simulated(kept: slice, share: float) -> Any:
        module = SimpleNamespace(fetched_rows=lambda *of: fetched_rows(*of)[kept] * share)
        operation = inputs.bind(STUDY.variant(f"policy_{policy}"), module)
        operation.poison()
        assert operation.check() == "steps: expected 202, got 0"
        operation.launch(0)
        return operation

    operation = simulated(slice(None), 1)
    assert operation.check() is None
    (bytes_per_step,) = operation.own_samples(0, 3)["fetched"]
    assert 0 < bytes_per_step < 0.2 * 64 * STUDY.constants["token_bytes"]
    assert simulated(slice(-1), 1).check() == "steps: expected 202, got 201"
    assert "rows fetched: expected at least" in simulated(slice(None), 0.1).check()


def test_an_unknown_policy_is_an_error() -> None:
    with pytest.raises(FieldError, match=r"^policy: expected one of \['lru', .*, got 'newest'$"):
        fetched("newest", [[0]], 1)
