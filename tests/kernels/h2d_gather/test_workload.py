"""The gather's workload: which rows it draws, and what must arrive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

GATHER = STUDIES["h2d_gather"]
WORKLOADS = load_python(GATHER, "workload")


def gather_case(bs: int, topk: int, draw: str) -> Case:
    return Case({"bs": bs, "topk": topk, "draw": draw}, 0, "default")


@given(
    bs=st.integers(1, 8),
    topk=st.integers(1, 16),
    spare=st.integers(0, 20),
    seed=st.integers(0, 2**32),
)
def test_a_permutation_takes_rows_once_and_in_range(
    bs: int, topk: int, spare: int, seed: int
) -> None:
    slots = bs * topk + spare
    pairs = WORKLOADS.draw_pairs(
        gather_case(bs, topk, "permutation"), slots, np.random.default_rng(seed)
    )
    assert (pairs.shape, pairs.dtype) == ((bs, topk, 2), np.int32)
    sources, destinations = pairs.reshape(-1, 2).T
    assert len(set(sources.tolist())) == bs * topk
    assert 0 <= sources.min() <= sources.max() < slots
    assert destinations.tolist() == list(range(bs * topk))


def test_with_replacement_repeats_rows_and_reaches_all_of_them() -> None:
    case = gather_case(8, 64, "with_replacement")
    pairs = WORKLOADS.draw_pairs(case, 16, np.random.default_rng(0))
    sources, destinations = pairs.reshape(-1, 2).T
    assert set(sources.tolist()) == set(range(16))
    assert destinations.tolist() == list(range(512))


@pytest.mark.parametrize(
    ("case", "slots", "field"),
    [
        (gather_case(4, 8, "permutation"), 31, "total_cpu_slots"),
        (gather_case(0, 8, "permutation"), 31, "case bs=0,topk=8,draw=permutation"),
        (gather_case(1, 8, "sorted"), 31, "case bs=1,topk=8,draw=sorted: draw"),
        (Case({"bs": 1, "topk": "8", "draw": "permutation"}, 0, "full"), 31, "case bs=1,topk=8"),
    ],
)
def test_rows_that_cannot_be_drawn_are_an_error(case: Case, slots: int, field: str) -> None:
    with pytest.raises(FieldError) as caught:
        WORKLOADS.draw_pairs(case, slots, np.random.default_rng(0))
    assert caught.value.field.startswith(field)


@given(
    cases=st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=3),
    spare=st.integers(0, 3),
    width=st.integers(1, 4),
)
def test_the_gathers_reference_is_the_plain_loop_whatever_came_before(
    cases: list[list[int]], spare: int, width: int
) -> None:
    src = np.arange(10 * width, dtype=np.uint8).reshape(10, width)
    reference = WORKLOADS.Reference(12 + spare, width)
    for sources in cases:
        reference.gather(src, np.array(sources, np.int32))
        expected = [[WORKLOADS.POISON] * width for _ in range(12 + spare)]
        for row, source in enumerate(sources):
            for byte in range(width):
                expected[row][byte] = source * width + byte
        assert reference.bytes.tolist() == expected


def test_rows_are_whole_vectors() -> None:
    constants = dict(GATHER.constants) | {"token_bytes": 100}
    with pytest.raises(FieldError, match=r"constants\.token_bytes: .* multiple of 16, got 100"):
        WORKLOADS.Workload(constants, np.random.default_rng(0))
