"""The calibration's workload: positions of rows, and the expected bytes, for random inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.study import Case
from analysis.toolchain.modules import load_python
from kernels.common.random_bytes import random_bytes
from tests.repository import STUDIES

WORKLOADS = load_python(STUDIES["link_calibration"], "workload")
POOL = 4096


def rows_case(row: int, stride: int, offset: int, rows: int) -> Case:
    values = {"row_bytes": row, "stride_bytes": stride, "offset_bytes": offset}
    return Case(values, rows * row, "default")


@given(
    row=st.integers(1, 6),
    spare=st.integers(0, 6),
    offset=st.integers(0, 4),
    rows=st.integers(1, 12),
    seed=st.integers(0, 2**32),
)
def test_the_reference_equals_a_plain_loop(
    row: int, spare: int, offset: int, rows: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pool = random_bytes(POOL, rng)
    case = rows_case(16 * row, 16 * (row + spare), 16 * offset, rows)
    starts = WORKLOADS.row_starts(case, POOL, rng)
    assert len(set(starts.tolist())) == rows
    assert ((starts - offset) % (row + spare) == 0).all()
    out = np.zeros(rows * row, WORKLOADS.VECTOR)
    WORKLOADS.gather_reference(pool.view(WORKLOADS.VECTOR), starts, 16 * row, out)
    expected = [pool[16 * start : 16 * (start + row)] for start in starts]
    assert out.tobytes() == np.concatenate(expected).tobytes()


@pytest.mark.parametrize(
    ("case", "field"),
    [
        (rows_case(100, 0, 0, 1), "row_bytes: expected a multiple of 16, got 100"),
        (rows_case(512, 0, 0, 9), "at most 8 rows in slots of 512 B, got 9"),
        (rows_case(512, 256, 0, 1), "rows in slots of 256 B, got 1"),
    ],
)
def test_rows_that_do_not_fit_are_an_error(case: Case, field: str) -> None:
    with pytest.raises(FieldError, match=field):
        WORKLOADS.row_starts(case, POOL, np.random.default_rng(0))


def test_random_bytes_take_every_value_at_every_place() -> None:
    rng = np.random.default_rng(0)
    assert [random_bytes(size, rng).size for size in (0, 1, 7, 8, 4097)] == [0, 1, 7, 8, 4097]
    values = random_bytes(8 * 2**14, rng).reshape(-1, 8)
    assert [len(set(column)) for column in values.T.tolist()] == [256] * 8
