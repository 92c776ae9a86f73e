"""Traces against the reference: the misses that they promise, and places in the pool."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from kernels.hot_set.reference import FREE, HotSet
from kernels.hot_set.traces import Shape, Trace, draw_places, draw_trace

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


@pytest.mark.parametrize("suffix", ["", "_consecutive"])
@pytest.mark.parametrize(
    ("name", "expected"), [("all_new", 64), ("all_same", 0), ("one_more", 1), ("twice", 16)]
)
def test_every_step_misses_as_many_rows_as_the_name_says(
    name: str, expected: int, suffix: str
) -> None:
    trace = drawn(name + suffix)
    assert (misses(trace) == expected).all()
    assert (trace.ids == drawn(name + suffix).ids).all()
    if name == "twice":
        sorted_ids = np.sort(trace.ids, axis=2)
        assert (sorted_ids[..., ::2] == sorted_ids[..., 1::2]).all()
    if name == "one_more":
        assert len(np.unique(trace.ids[:, 0])) == SHAPE.slots + 1


@pytest.mark.parametrize("share", ["0", "0.5", "0.9", "0.999", "1"])
def test_the_share_named_is_kept_and_some_of_the_rest_is_in_the_buffer_yet(share: str) -> None:
    trace = drawn(f"kept_{share}")
    measured = trace.ids[trace.warmup_steps - 1 :, 0]
    kept = {len(np.intersect1d(*pair)) for pair in pairwise(measured)}
    assert kept == {round(64 * float(share))}
    replaced = 64 - min(kept)
    assert 0.3 * replaced <= misses(trace).mean() < 0.95 * replaced or replaced < 1


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        *(("all_new", {field: 0}, f"{field}: expected at least 1") for field in vars(SHAPE)),
        ("all_new", {"topk": 129}, "topk: expected at most 128, the number of slots, got 129"),
        ("all_new", {"context_rows": 127}, "context_rows: expected at least 128, the number of"),
        ("all_new", {"context_rows": 191}, "context_rows: expected at least 192 for this trace"),
        ("one_more", {"context_rows": 128}, "context_rows: expected at least 129 for this trace"),
        ("kept_0.9", {"context_rows": 256}, "context_rows: expected at least 257 for this trace"),
        ("misses_3", {}, "trace misses_3: expected a multiple of 2 up to 128, got 3"),
        ("misses_130", {}, "trace misses_130: expected a multiple of 2 up to 128, got 130"),
        ("kept_1.5", {}, "trace kept_1.5: expected a share from 0 to 1, got 1.5"),
        ("twice", {"topk": 63}, "topk: expected an even number for the trace twice, got 63"),
        ("newest", {}, "trace: expected misses_N, .*, got 'newest'"),
    ],
)
def test_a_trace_that_cannot_be_drawn_is_an_error(
    name: str, changes: dict[str, int], message: str
) -> None:
    with pytest.raises(FieldError, match=f"^{message}"):
        drawn(name, replace(SHAPE, **changes))


@pytest.mark.parametrize(
    ("layout", "run"), [("scattered", 1), ("pages_16", 16), ("consecutive", 960)]
)
def test_places_are_aligned_runs(layout: str, run: int) -> None:
    places = draw_places(2, 960, 100_000, layout, np.random.default_rng(0))
    assert all(len(np.unique(row)) == 960 for row in places)
    assert 0 <= places.min() <= places.max() < 100_000
    assert (places[0] != places[1]).any()
    runs = places.reshape(2, -1, run)
    assert (np.diff(runs, axis=2) == 1).all()
    assert layout == "consecutive" or (runs[..., 0] % run == 0).all()


@pytest.mark.parametrize(
    ("rows", "layout", "message"),
    [
        (0, "scattered", "context_rows: expected 1 to 100, all rows of the pool, got 0"),
        (101, "scattered", "context_rows: expected 1 to 100, all rows of the pool, got 101"),
        (97, "pages_16", "pool_rows: expected room for 7 pages of 16 rows, got 100"),
        (9, "pages", "layout: expected scattered, pages_N or consecutive, got 'pages'"),
    ],
)
def test_places_that_cannot_be_drawn_are_an_error(rows: int, layout: str, message: str) -> None:
    with pytest.raises(FieldError, match=f"^{message}$"):
        draw_places(1, rows, 100, layout, np.random.default_rng(0))
