"""The reference, policies and traces against plain models, and the check of a variant's state."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.study import Case
from analysis.toolchain.modules import load_python
from kernels.hot_set.comparison import Contents, Source, difference
from kernels.hot_set.policies import POLICIES, fetched_rows
from kernels.hot_set.reference import FREE, HotSet, buffer_of
from kernels.hot_set.traces import Shape, Trace, draw_trace
from tests.repository import STUDIES

STUDY = STUDIES["hot_set"]
CONTEXT_ROWS, SLOTS, ROW_BYTES, POISON = 24, 8, 16, 0xA5
RNG = np.random.default_rng(0)
SOURCE = Source(
    RNG.permutation(40)[:CONTEXT_ROWS], RNG.integers(0, 256, (40, ROW_BYTES), np.uint8), POISON
)


def steps_of(rows: int, longest: int, most: int, least: int = 1, steps: int = 30) -> Any:
    """Steps of `least` to `longest` ids below `rows`, at most `most` of them different."""
    ids = st.lists(st.integers(0, rows - 1), min_size=least, max_size=longest)
    ids = ids.filter(lambda ids: len(set(ids)) <= most)
    return st.lists(ids, min_size=1, max_size=steps)


def missed_and_evicted(
    slot_of: OrderedDict[int, int], ids: list[int]
) -> tuple[list[int], list[int]]:
    """Do a step of a hot set, the slot of every row in the order of eviction."""
    distinct = list(dict.fromkeys(ids))
    missed = [row for row in distinct if row not in slot_of]
    taken = [slot for slot in range(SLOTS) if slot not in slot_of.values()][: len(missed)]
    evicted = [row for row in slot_of if row not in distinct][: len(missed) - len(taken)]
    taken += [slot_of.pop(row) for row in evicted]
    slot_of.update(zip(missed, sorted(taken), strict=True))
    for row in sorted(distinct):  # the lower id is evicted first
        slot_of.move_to_end(row)
    return missed, evicted


@given(steps=steps_of(CONTEXT_ROWS, 2 * SLOTS, SLOTS), seed=st.integers(0, 99))
def test_the_reference_agrees_with_a_dictionary_and_so_does_any_choice_of_slots(
    steps: list[list[int]], seed: int
) -> None:
    hot_set, plain = HotSet(SLOTS, CONTEXT_ROWS), OrderedDict[int, int]()
    to = np.random.default_rng(seed).permutation(SLOTS)  # slots of a variant
    slot_of = np.argsort(to)
    for ids in steps:
        found = hot_set.step(np.array(ids))
        missed, evicted = missed_and_evicted(plain, ids)
        assert found.missed_rows.tolist() == missed
        assert found.evicted_rows.tolist() == evicted
        assert found.slots.tolist() == [plain[row] for row in ids]
        assert found.missed_slots.tolist() == [plain[row] for row in missed]
        assert hot_set.order.tolist() == list(plain.values())
        assert (hot_set.last_used[found.slots] == hot_set.steps - 1).all()
        buffer = buffer_of(hot_set, SOURCE.places, SOURCE.pool, POISON)[to]
        state = hot_set.rows[to], hot_set.last_used[to], slot_of[hot_set.order], buffer
        got = Contents(slot_of[found.slots], *state, found.missed_rows[::-1])
        assert difference(hot_set, found, np.array(ids), got, SOURCE) is None


SPOILED: list[tuple[str, int, int, str]] = [
    ("rows", 7, 4, "row 4: expected one slot, got 2"),
    ("rows", 7, 9, "row 9: expected no slot, got one"),
    ("rows", 0, FREE, "row 7: expected one slot, got none"),
    ("slots", 0, 1, "id 0: expected the slot of row 4, got slot 1, row 6"),
    ("slots", 2, 8, "id 2: expected the slot of row 6, got slot 8, no row"),
    ("last_used", 1, 0, "row 6: expected last use in step 1, got 0"),
    ("order", 1, 3, "order of eviction 1: expected the slot of row 4, got slot 3, row 5"),
    ("fetched", 0, 7, "row 7: expected no fetch, got one"),
    ("fetched", 0, 5, "row 5: expected one fetch, got 2"),
    ("buffer", 15, 0, "slot 0, row 7, byte 15: expected"),
    ("buffer", 5 * ROW_BYTES, 0, "slot 5, which is free, byte 0: expected 165, got 0"),
]
"""A field, a place in its flat array, another value, and what the check says."""


def test_a_difference_names_the_field_the_expected_and_the_actual() -> None:
    hot_set, ids = HotSet(SLOTS, CONTEXT_ROWS), np.array([4, 5, 6])
    hot_set.step(np.array([7, 6]))
    step = hot_set.step(ids)
    buffer = buffer_of(hot_set, SOURCE.places, SOURCE.pool, POISON)
    state = hot_set.rows, hot_set.last_used, hot_set.order, buffer, step.missed_rows
    right = Contents(step.slots, *state)
    for field, at, value, message in SPOILED:
        spoiled = getattr(right, field).copy()
        spoiled.flat[at] = value
        wrong = replace(right, **{field: spoiled})
        assert str(difference(hot_set, step, ids, wrong, SOURCE)).startswith(message)


def test_ids_that_no_step_can_take_are_an_error_and_change_nothing() -> None:
    hot_set = HotSet(SLOTS, CONTEXT_ROWS)
    hot_set.step(np.array([1, 2]))
    before = hot_set.rows.tolist(), hot_set.last_used.tolist(), hot_set.steps
    for ids, message in (
        ([], "at least one row, got 0"),
        ([3, 24, 25], "rows from 0 to 23, got 24"),
        (range(9), "at most 8 different rows, the number of slots, got 9"),
        ([[1]], "a list of whole numbers, got"),
    ):
        with pytest.raises(FieldError, match=f"^ids: expected {message}"):
            hot_set.step(np.array(ids, np.int32))
        assert (hot_set.rows.tolist(), hot_set.last_used.tolist(), hot_set.steps) == before
    for slots, rows in ((0, 1), (1, 0), (1, 2**31)):
        with pytest.raises(FieldError, match=r"^(slots|context_rows): expected"):
            HotSet(slots, rows)


def test_a_long_run_repeats_the_steps_after_the_warm_up() -> None:
    made_current: list[int] = []
    bound = SimpleNamespace(advance=lambda stream, index, number: made_current.append(index))
    inputs = SimpleNamespace(trace=SimpleNamespace(warmup_steps=2), shape=SimpleNamespace(steps=3))
    variant = STUDY.variant("v3_block_per_request")
    steps = load_python(STUDY, "workload").HotSetSteps(bound, inputs, variant)
    for _ in range(9):
        steps.advance(0)
    assert made_current == [0, 1, 2, 3, 4, 2, 3, 4, 2]


# Policies of eviction.

FEW_ROWS = 7


@cache
def fewest(needed: Sequence[frozenset[int]], slots: int, held: frozenset[int]) -> int:
    """Rows fetched by the best of all possible choices."""
    if not needed:
        return 0
    first, *rest = needed
    kept = combinations(sorted(held - first), min(len(held - first), slots - len(first)))
    return len(first - held) + min(fewest(tuple(rest), slots, first.union(some)) for some in kept)


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


@given(steps=steps_of(FEW_ROWS, 2, 2, least=2, steps=9), slots=st.integers(2, 4))
def test_the_optimum_is_the_best_of_all_choices(steps: list[list[int]], slots: int) -> None:
    least = fewest(tuple(map(frozenset, steps)), slots, frozenset())
    found = {name: fetched_rows(name, np.array(steps), slots, FEW_ROWS).sum() for name in POLICIES}
    assert found["belady"] == least == min(found.values())


@settings(max_examples=200)
@given(steps=steps_of(FEW_ROWS, 3, 3, least=3), slots=st.integers(3, 5))
def test_the_clock_agrees_with_a_hand_over_all_slots(steps: list[list[int]], slots: int) -> None:
    found = fetched_rows("clock", np.array(steps), slots, FEW_ROWS)
    assert found.tolist() == [*fetched_by_hand(steps, slots)]


def test_the_check_counts_steps_and_knows_the_optimum() -> None:
    case = Case({"topk": 64, "slots": 128, "trace": "kept_0.8"}, 0, "default")
    workload = load_python(STUDY, "policy_workload").Workload
    inputs = workload(STUDY.constants, np.random.default_rng(0)).prepare(case)
    found = fetched_rows("lru", inputs.ids, 128, 131072)
    for rows, said in (
        (found[:0], "steps: expected 202, got 0"),
        (found // 9, "rows fetched: expected at least"),
        (found, "None"),
    ):
        module = SimpleNamespace(fetched_rows=lambda *_, rows=rows: rows)
        operation = inputs.bind(STUDY.variant("policy_lru"), module)
        operation.poison()
        operation.launch(0)
        assert str(operation.check()).startswith(said)
    (bytes_per_step,) = operation.own_samples(0, 3)["fetched"]
    assert 0 < bytes_per_step < 0.2 * 64 * STUDY.constants["token_bytes"]


# Traces: the misses that they promise, and places in the pool.

SHAPE = Shape(requests=2, topk=64, slots=128, context_rows=4096, steps=60)


def drawn(name: str, shape: Shape = SHAPE, seed: int = 0) -> Trace:
    return draw_trace(name, shape, np.random.default_rng(seed))


def misses(trace: Trace, shape: Shape = SHAPE) -> np.ndarray:
    """Misses [steps, requests] after the warm-up, which must leave no slot free."""
    hot_sets = [HotSet(shape.slots, shape.context_rows) for _ in range(shape.requests)]
    counts = []
    for number, ids in enumerate(trace.ids):
        if number == trace.warmup_steps:
            assert all((hot_set.rows != FREE).all() for hot_set in hot_sets)
        found = [hot_set.step(row) for hot_set, row in zip(hot_sets, ids, strict=True)]
        counts.append([len(step.missed_rows) for step in found])
    return np.array(counts)[trace.warmup_steps :]


@settings(max_examples=60)
@given(
    topk=st.integers(1, 40),
    spare_slots=st.integers(0, 60),
    spare_rows=st.integers(0, 20),
    share=st.floats(0, 1),
    is_consecutive=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_misses_are_exact_down_to_the_smallest_context(
    topk: int, spare_slots: int, spare_rows: int, share: float, is_consecutive: bool, seed: int
) -> None:
    each = round(share * topk)
    slots = topk + spare_slots
    shape = Shape(2, topk, slots, slots + each + spare_rows, 40)
    trace = drawn(f"misses_{2 * each}" + "_consecutive" * is_consecutive, shape, seed)
    assert trace.ids.shape == (trace.warmup_steps + 40, 2, topk)
    assert (misses(trace, shape) == each).all()
    assert not is_consecutive or (np.diff(trace.ids, axis=2) > 0).all()


def test_every_step_misses_as_many_rows_as_the_name_says() -> None:
    for name, expected in {"all_new": 64, "all_same": 0, "one_more": 1, "twice": 16}.items():
        assert (misses(drawn(name)) == expected).all()
    for share, replaced in {"0": 64, "0.5": 32, "0.9": 6, "1": 0}.items():
        trace = drawn(f"kept_{share}")
        measured = trace.ids[trace.warmup_steps - 1 :, 0]
        assert {len(np.intersect1d(*pair)) for pair in pairwise(measured)} == {64 - replaced}
        # Some of the other rows are in the buffer yet.
        assert 0.3 * replaced <= misses(trace).mean() <= 0.95 * replaced


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        *(("all_new", {field: 0}, f"{field}: expected at least 1") for field in vars(SHAPE)),
        ("all_new", {"topk": 129}, "topk: expected at most 128, the number of slots, got 129"),
        ("all_new", {"context_rows": 127}, "context_rows: expected at least 128, the number of"),
        ("all_new", {"context_rows": 191}, "context_rows: expected at least 192 for this trace"),
        ("misses_130", {}, "trace misses_130: expected a multiple of 2"),
        ("kept_1.5", {}, "trace kept_1.5: expected a share from 0 to 1, got 1.5"),
        ("twice", {"topk": 63}, "topk: expected an even number for the trace twice, got 63"),
        ("newest", {}, "trace: expected misses_N, .*, got 'newest'"),
    ],
)
def test_an_impossible_trace_is_an_error(name: str, changes: dict[str, int], message: str) -> None:
    with pytest.raises(FieldError, match=f"^{message}"):
        drawn(name, replace(SHAPE, **changes))
