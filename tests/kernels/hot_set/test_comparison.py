"""The check that the workload uses: it passes right variants and catches every injected fault."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from kernels.hot_set.comparison import Contents, Source, difference
from kernels.hot_set.reference import HotSet
from kernels.hot_set.traces import Shape, draw_trace
from tests.kernels.hot_set.faulty import FAULTS, Fault, Variant

SHAPE = Shape(requests=1, topk=12, slots=32, context_rows=200, steps=30)
ROW_BYTES = 16
TRACES = ("kept_0.5", "kept_0.9", "misses_4", "all_new", "all_same", "one_more", "twice")


def source(rng: np.random.Generator) -> Source:
    pool = rng.integers(0, 256, (300, ROW_BYTES), dtype=np.uint8)
    return Source(rng.permutation(300)[: SHAPE.context_rows], pool, poison=0xA5)


def found(trace: str, fault: Fault | None, keeps_order: bool = False) -> str | None:
    """The first difference over all steps of a trace."""
    rng = np.random.default_rng(0)
    rows = source(rng)
    reference, variant = HotSet(32, 200), Variant(32, ROW_BYTES, rows, fault)
    for (ids,) in draw_trace(trace, SHAPE, rng).ids:
        step, got = reference.step(ids), variant.step(ids)
        if keeps_order:
            got = with_order(got)
        if wrong := difference(reference, step, ids, got, rows):
            return wrong
    return None


def with_order(got: Contents) -> Contents:
    assert got.last_used is not None
    held = np.flatnonzero(got.rows >= 0)
    order = held[np.lexsort((got.rows[held], got.last_used[held]))]
    return replace(got, last_used=None, order=order)


@pytest.mark.parametrize("keeps_order", [False, True])
@pytest.mark.parametrize("trace", TRACES)
def test_a_right_variant_passes_with_whichever_slots_it_chooses(
    trace: str, keeps_order: bool
) -> None:
    assert found(trace, None, keeps_order) is None


CAUGHT = {
    "evicts the higher id of a tie": "row .*: expected (one slot, got none|no slot)",
    "keeps the index entry of an evicted row": "row .*: expected (one|no) slot|id .*: expected",
    "overwrites a row that should stay": "row .*: expected (one slot, got none|no slot)",
    "hands one slot to two rows": "row .*: expected one slot, got none",
    "copies half of a row": "slot .*, row .*, byte 8: expected",
    "forgets that a hit was used": "row .*: expected last use in step",
    "fetches a row once per appearance": "row .*: expected one slot, got 2",
    "leaves the bytes of the old row": "slot .*, row .*, byte 0: expected",
    "evicts a row that the step uses": "row .*: expected (one|no) slot",
    "fetches a row that is held": "row .*: expected no fetch, got one",
    "fetches a row twice into its slot": "row .*: expected one fetch, got 2",
    "reads the row of the next place": "slot .*, row .*, byte 0: expected",
    "hands out slots in another order": "id 0: expected the slot of row",
    "counts one step twice": "row .*: expected last use in step 5, got 6",
    "writes behind its slot": "slot .*, byte 0: expected",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_caught(fault: Fault) -> None:
    wrong = found("twice" if "appearance" in fault else "kept_0.5", fault)
    assert wrong is not None
    assert re.match(CAUGHT[fault], wrong)


def test_a_wrong_order_list_is_caught_before_it_evicts() -> None:
    rows = source(np.random.default_rng(0))
    reference, variant = HotSet(8, 200), Variant(8, ROW_BYTES, rows, None)
    ids = np.arange(4, dtype=np.int32)
    step, got = reference.step(ids), with_order(variant.step(ids))
    assert difference(reference, step, ids, got, rows) is None
    assert got.order is not None
    wrong = replace(got, order=got.order[[1, 0, 2, 3]])
    message = "order of eviction 0: expected the slot of row 0, got slot 1, row 1"
    assert difference(reference, step, ids, wrong, rows) == message
    short = replace(got, order=got.order[:3])
    message = "order of eviction: expected 4 slots, got [3]"
    assert difference(reference, step, ids, short, rows) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slots": np.array([0, 1])}, "id: expected 3 slots, got [2]"),
        (
            {"slots": np.array([0, 1, 8])},
            "id 2: expected the slot of row 6, got slot 8, no row",
        ),
        ({"rows": np.full(9, -1, np.int32)}, "slots: expected 8, got [9]"),
        ({"fetched": np.array([4, 5])}, "row 6: expected one fetch, got none"),
        (
            {"buffer": np.zeros((8, ROW_BYTES), np.uint8)},
            "slot 3, which is free, byte 0: expected 165, got 0",
        ),
    ],
)
def test_a_difference_names_the_field_the_expected_and_the_actual(
    changes: dict[str, np.ndarray], message: str
) -> None:
    rows = Source(np.arange(200), np.zeros((200, ROW_BYTES), np.uint8), poison=0xA5)
    reference = HotSet(8, 200)
    ids = np.array([4, 5, 6], np.int32)
    step = reference.step(ids)
    right = Contents(step.slots, reference.rows, reference.last_used)
    assert difference(reference, step, ids, right, rows) is None
    assert difference(reference, step, ids, replace(right, **changes), rows) == message
