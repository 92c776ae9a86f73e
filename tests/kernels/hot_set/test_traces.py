"""Traces against the reference: the misses they promise, and places in the pool."""

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


def all_twice(ids: np.ndarray) -> bool:
    return all((np.unique(row, return_counts=True)[1] == 2).all() for step in ids for row in step)


@settings(max_examples=60, deadline=None)
@given(
    topk=st.integers(1, 40),
    spare_slots=st.integers(0, 60),
    spare_rows=st.integers(0, 20),
    share=st.floats(0, 1),
    consecutive=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_misses_are_exact_down_to_the_smallest_context(
    topk: int, spare_slots: int, spare_rows: int, share: float, consecutive: bool, seed: int
) -> None:
    each = round(share * topk)
    slots = topk + spare_slots
    shape = Shape(2, topk, slots, slots + each + spare_rows, 40)
    trace = drawn(f"misses_{2 * each}" + "_consecutive" * consecutive, shape, seed)
    assert trace.ids.shape == (trace.warmup_steps + 40, 2, topk)
    assert trace.ids.dtype == np.int32
    assert (misses(trace, shape) == each).all()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("all_new", 64), ("all_same", 0), ("one_more", 1), ("twice", 16), ("misses_20", 10)],
)
@pytest.mark.parametrize("suffix", ["", "_consecutive"])
def test_every_step_misses_as_many_rows_as_the_name_says(
    name: str, expected: int, suffix: str
) -> None:
    assert (misses(drawn(name + suffix)) == expected).all()


@pytest.mark.parametrize("share", ["0", "0.5", "0.8", "0.9", "0.98", "0.999", "1"])
def test_the_share_named_is_kept_from_step_to_step(share: str) -> None:
    trace = drawn(f"kept_{share}", replace(SHAPE, topk=100))
    measured = trace.ids[trace.warmup_steps - 1 :]
    kept = [
        len(np.intersect1d(one, other))
        for step, following in pairwise(measured)
        for one, other in zip(step, following, strict=True)
    ]
    assert set(kept) == {round(100 * float(share))}
    assert all(len(np.unique(row)) == 100 for step in measured for row in step)


def test_the_rest_moves_slowly_so_that_some_of_it_is_in_the_buffer_yet() -> None:
    shape = replace(SHAPE, steps=200)
    replaced = 0.2 * SHAPE.topk
    found = misses(drawn("kept_0.8", shape), shape)
    assert 0.3 * replaced < found.mean() < 0.95 * replaced
    assert np.ptp(found) > 0
    # Rows of a neighbourhood that stood still would all have been used after some steps.
    last = drawn("kept_0.8", shape).ids
    assert len(np.unique(last[-50:, 0])) < len(np.unique(last[:, 0])) < shape.context_rows / 2


def test_every_row_comes_twice_and_not_beside_itself() -> None:
    trace = drawn("twice")
    assert all_twice(trace.ids)
    assert (trace.ids[..., ::2] != trace.ids[..., 1::2]).mean() > 0.9


def test_one_more_takes_turns_through_one_row_more_than_fits() -> None:
    trace = drawn("one_more")
    assert len(np.unique(trace.ids[:, 0])) == SHAPE.slots + 1


def test_consecutive_rows_ascend_and_scattered_ones_do_not() -> None:
    scattered, consecutive = drawn("all_new").ids, drawn("all_new_consecutive").ids
    assert (np.diff(consecutive, axis=2) == 1).all()
    assert (np.diff(scattered, axis=2) == 1).mean() < 0.01
    assert (np.diff(drawn("kept_0.9_consecutive").ids, axis=2) > 0).all()


def test_a_trace_follows_from_its_seed_and_requests_differ() -> None:
    for name in ("misses_20", "kept_0.9", "twice"):
        trace = drawn(name, seed=3)
        assert (trace.ids == drawn(name, seed=3).ids).all()
        assert (trace.ids != drawn(name, seed=4).ids).any()
        assert (trace.ids[:, 0] != trace.ids[:, 1]).any()


@pytest.mark.parametrize("field", ["requests", "topk", "slots", "context_rows", "steps"])
def test_an_empty_shape_is_an_error(field: str) -> None:
    with pytest.raises(FieldError) as caught:
        replace(SHAPE, **{field: 0})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("all_new", {"topk": 129}, "topk: expected at most 128, the number of slots, got 129"),
        (
            *("all_new", {"context_rows": 127}),
            "context_rows: expected at least 128, the number of slots, got 127",
        ),
        (
            *("all_new", {"context_rows": 191}),
            "context_rows: expected at least 192 for this trace, got 191",
        ),
        (
            *("one_more", {"context_rows": 128}),
            "context_rows: expected at least 129 for this trace, got 128",
        ),
        (
            *("kept_0.9", {"context_rows": 256}),
            "context_rows: expected at least 257 for this trace, got 256",
        ),
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
    with pytest.raises(FieldError, match=f"^{message}$"):
        drawn(name, replace(SHAPE, **changes))


@pytest.mark.parametrize("layout", ["scattered", "pages_16", "pages_64", "consecutive"])
def test_a_context_has_each_pool_row_at_most_once(layout: str) -> None:
    places = draw_places(3, 1000, 100_000, layout, np.random.default_rng(0))
    assert places.shape == (3, 1000)
    assert places.dtype == np.int32
    assert all(len(np.unique(row)) == 1000 for row in places)
    assert 0 <= places.min() <= places.max() < 100_000
    assert (places[0] != places[1]).any()


@pytest.mark.parametrize(("layout", "run"), [("pages_16", 16), ("consecutive", 1000)])
def test_places_are_aligned_runs(layout: str, run: int) -> None:
    places = draw_places(2, 960, 100_000, layout, np.random.default_rng(0))
    runs = places.reshape(2, -1, min(run, 960))
    assert (np.diff(runs, axis=2) == 1).all()
    assert layout == "consecutive" or (runs[..., 0] % run == 0).all()


UNPLACED = {
    (0, "scattered"): "context_rows: expected 1 to 100, all rows of the pool, got 0",
    (101, "scattered"): "context_rows: expected 1 to 100, all rows of the pool, got 101",
    (97, "pages_16"): "pool_rows: expected room for 7 pages of 16 rows, got 100",
    (9, "pages"): "layout: expected scattered, pages_N or consecutive, got 'pages'",
}


@pytest.mark.parametrize(("rows", "layout"), UNPLACED)
def test_places_that_cannot_be_drawn_are_an_error(rows: int, layout: str) -> None:
    with pytest.raises(FieldError, match=f"^{UNPLACED[rows, layout]}$"):
        draw_places(1, rows, 100, layout, np.random.default_rng(0))
