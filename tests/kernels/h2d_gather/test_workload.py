"""The gather's workload: which rows it draws, and what must arrive; the steps in machine code."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.study import Case
from analysis.toolchain import sass
from analysis.toolchain.modules import load_python
from tests.compiled import device_code
from tests.repository import STUDIES

GATHER = STUDIES["h2d_gather"]
WORKLOADS = load_python(GATHER, "workload")


def drawn(bs: int | str, topk: int | str, draw: str, slots: int, seed: int = 0) -> np.ndarray:
    case = Case({"bs": bs, "topk": topk, "draw": draw}, 0, "default")
    pairs: np.ndarray = WORKLOADS.draw_pairs(case, slots, np.random.default_rng(seed))
    assert pairs.dtype == np.int32
    return pairs


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
    sources, destinations = drawn(bs, topk, "permutation", slots, seed).reshape(-1, 2).T
    assert len(set(sources.tolist())) == bs * topk
    assert 0 <= sources.min() <= sources.max() < slots
    assert destinations.tolist() == list(range(bs * topk))


def test_with_replacement_repeats_rows_and_reaches_all_of_them() -> None:
    sources, destinations = drawn(8, 64, "with_replacement", 16).reshape(-1, 2).T
    assert set(sources.tolist()) == set(range(16))
    assert destinations.tolist() == list(range(512))


@pytest.mark.parametrize(
    ("bs", "topk", "draw", "field"),
    [
        (4, 8, "permutation", "total_cpu_slots"),
        (0, 8, "permutation", "case bs=0,topk=8,draw=permutation"),
        (1, 8, "sorted", "case bs=1,topk=8,draw=sorted: draw"),
        (1, "8", "permutation", "case bs=1,topk=8"),
    ],
)
def test_rows_that_cannot_be_drawn_are_an_error(
    bs: int, topk: int | str, draw: str, field: str
) -> None:
    with pytest.raises(FieldError, match=f"^{field}"):
        drawn(bs, topk, draw, 31)


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
        poison = [[WORKLOADS.POISON] * width] * (12 + spare - len(sources))
        assert reference.bytes.tolist() == [src[source].tolist() for source in sources] + poison


def test_rows_are_whole_vectors() -> None:
    constants = {**GATHER.constants, "token_bytes": 100}
    with pytest.raises(FieldError, match=r"constants\.token_bytes: .* multiple of 16, got 100"):
        WORKLOADS.Workload(constants, np.random.default_rng(0))


def test_a_step_shows_in_the_machine_code() -> None:
    vectors = GATHER.constants["token_bytes"] // 16
    built = {}
    for name in ("v1_vectorized", "v2_warp_per_token", "v3_loads_first"):
        code = device_code(GATHER, GATHER.variant(name))
        (built[name],) = sass.parse_sass(sass.cuobjdump(code, "-sass"))
    assert built["v1_vectorized"].loads[128] == vectors
    assert built["v1_vectorized"].stores == Counter({128: vectors})
    assert built["v2_warp_per_token"].loads_in_flight == 1
    assert built["v3_loads_first"].loads_in_flight == 2
    assert built["v3_loads_first"].in_flight_bytes == 2 * built["v2_warp_per_token"].in_flight_bytes
