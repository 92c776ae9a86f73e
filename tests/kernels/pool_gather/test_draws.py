"""The rows that the launches of a case gather."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from kernels.common.draws import consecutive_sets
from tests.kernels.pool_gather.fake import DRAWS, case


def drawn(rows: int, layout: str, pool_rows: int) -> np.ndarray:
    sets: np.ndarray = DRAWS.draw_sets(case(rows, layout), pool_rows, np.random.default_rng(0))
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
    rng = np.random.default_rng(seed)
    found = DRAWS._draw(case(rows, layout), layout, rows, pool_rows, rng)
    assert found.shape == (rows,)
    assert 0 <= found.min() <= found.max() < pool_rows
    assert layout != "distinct" or len(np.unique(found)) == rows
    if layout == "contiguous":
        assert np.ptp(found[: DRAWS.REQUEST_ROWS]) < DRAWS.STRETCH_ROWS


def test_no_launch_gathers_the_rows_of_another_until_all_were_launched() -> None:
    for rows in (2048, 262144):
        sets = drawn(rows, "scattered", 65_000_000)
        assert len(sets) >= 4
        assert sets.size >= 2**20
        assert len({tuple(rows[:8]) for rows in sets.tolist()}) == len(sets)
    assert len(drawn(2048, "repeated", 65_000_000)) == 1
    assert len(np.unique(drawn(4000, "scattered", 4096)[0])) < 4000


@pytest.mark.parametrize("run", [2, 64])
def test_pages_are_aligned_runs_anywhere(run: int) -> None:
    rows = drawn(4096, f"pages_{run}", 1_000_000)[0].reshape(-1, run)
    assert (np.diff(rows, axis=1) == 1).all()
    assert (rows[:, 0] % run == 0).all()
    assert rows.max() > 900_000


def test_consecutive_sets_are_stretches_within_the_pool() -> None:
    sets = consecutive_sets(10, 50, 12, np.random.default_rng(0))
    assert (np.diff(sets, axis=1) == 1).all()
    assert set(sets[:, 0].tolist()) == {0, 1, 2}
    with pytest.raises(FieldError, match="rows: expected at most 12"):
        consecutive_sets(13, 1, 12, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("rows", "layout", "field"),
    [
        (0, "scattered", ": rows"),
        *((101, "distinct", ""), (1, "contiguous", ""), (1, "pages_101", "")),
        *((1, "pages_0", ": layout"), (1, "sorted", ": layout")),
    ],
)
def test_rows_that_cannot_be_drawn_are_an_error(rows: int, layout: str, field: str) -> None:
    with pytest.raises(FieldError) as caught:
        drawn(rows, layout, 100)
    assert caught.value.field == f"case {case(rows, layout).id}{field}"
