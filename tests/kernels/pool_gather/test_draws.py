"""The rows that the launches of a case gather."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from kernels.common.draws import consecutive_sets
from tests.kernels.pool_gather.fake import DRAWS, case


def drawn(rows: int, layout: str, pool_rows: int, seed: int = 0) -> np.ndarray:
    sets: np.ndarray = DRAWS.draw_sets(case(rows, layout), pool_rows, np.random.default_rng(seed))
    return sets


@given(
    rows=st.integers(1, 5000),
    layout=st.sampled_from(["scattered", "distinct", "pages_64", "contiguous", "repeated"]),
    spare=st.integers(0, 1000),
    seed=st.integers(0, 2**32),
)
def test_every_layout_draws_as_many_rows_of_the_pool(
    rows: int, layout: str, spare: int, seed: int
) -> None:
    pool_rows = DRAWS.STRETCH_ROWS + rows + spare
    few = np.random.default_rng(seed)
    found = DRAWS._draw(case(rows, layout), layout, rows, pool_rows, few)
    assert found.shape == (rows,)
    assert 0 <= found.min() <= found.max() < pool_rows


def test_no_launch_gathers_the_rows_of_another_until_all_were_launched() -> None:
    for rows in (2048, 262144):
        sets = drawn(rows, "scattered", 65_000_000)
        assert len(sets) >= 4
        assert sets.size >= 2**20
        assert sets.dtype == np.int32
        assert len({tuple(rows[:8]) for rows in sets.tolist()}) == len(sets)
    assert len(drawn(2048, "repeated", 65_000_000)) == 1


def test_scattered_rows_repeat_and_distinct_ones_do_not() -> None:
    scattered, distinct = (drawn(4000, layout, 4096)[0] for layout in ("scattered", "distinct"))
    assert len(set(scattered.tolist())) < 4000
    assert len(set(distinct.tolist())) == 4000


@pytest.mark.parametrize("run", [2, 64])
def test_pages_are_aligned_runs_anywhere(run: int) -> None:
    rows = drawn(4096, f"pages_{run}", 1_000_000)[0].reshape(-1, run)
    assert (np.diff(rows, axis=1) == 1).all()
    assert (rows[:, 0] % run == 0).all()
    assert rows.max() > 900_000
    assert len(set(rows[:, 0].tolist())) > 0.95 * len(rows)


def test_a_request_stays_within_its_stretch() -> None:
    rows = drawn(8192, "contiguous", 10_000_000)[0].reshape(-1, DRAWS.REQUEST_ROWS)
    spans = rows.max(axis=1) - rows.min(axis=1)
    assert (spans < DRAWS.STRETCH_ROWS).all()
    assert (spans > DRAWS.STRETCH_ROWS // 2).all()
    assert np.ptp(rows[:, 0]) > DRAWS.STRETCH_ROWS


def test_consecutive_sets_are_stretches_within_the_pool() -> None:
    sets = consecutive_sets(10, 50, 12, np.random.default_rng(0))
    assert (np.diff(sets, axis=1) == 1).all()
    assert set(sets[:, 0].tolist()) == {0, 1, 2}
    with pytest.raises(FieldError, match="rows: expected at most 12"):
        consecutive_sets(13, 1, 12, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("rows", "layout", "field"),
    [
        (0, "scattered", "case rows=0,pool_mib=1,layout=scattered: rows"),
        (101, "distinct", "case rows=101,pool_mib=1,layout=distinct"),
        (1, "contiguous", "case rows=1,pool_mib=1,layout=contiguous"),
        (1, "pages_101", "case rows=1,pool_mib=1,layout=pages_101"),
        (1, "pages_0", "case rows=1,pool_mib=1,layout=pages_0: layout"),
        (1, "sorted", "case rows=1,pool_mib=1,layout=sorted: layout"),
    ],
)
def test_rows_that_cannot_be_drawn_are_an_error(rows: int, layout: str, field: str) -> None:
    with pytest.raises(FieldError) as caught:
        drawn(rows, layout, 100)
    assert caught.value.field == field
