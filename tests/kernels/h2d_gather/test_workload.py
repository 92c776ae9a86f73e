"""The rows that the gather draws, what must arrive, machine code, and the team of index_select."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.study import Case
from analysis.toolchain import sass
from analysis.toolchain.modules import load_python
from tests.compiled import QUICK, module_file
from tests.repository import STUDIES

GATHER = STUDIES["h2d_gather"]
WORKLOADS = load_python(GATHER, "workload")


@given(
    bs=st.integers(1, 8),
    topk=st.integers(1, 16),
    spare=st.integers(0, 20),
    draw=st.sampled_from(["permutation", "with_replacement"]),
    seed=st.integers(0, 2**32),
)
def test_drawn_rows_are_in_range_and_those_of_a_permutation_differ(
    bs: int, topk: int, spare: int, draw: str, seed: int
) -> None:
    slots = bs * topk + spare
    case = Case({"bs": bs, "topk": topk, "draw": draw}, 0, "default")
    pairs = WORKLOADS.draw_pairs(case, slots, np.random.default_rng(seed))
    sources, destinations = pairs.reshape(-1, 2).T
    assert pairs.dtype == np.int32 and 0 <= sources.min() <= sources.max() < slots
    assert destinations.tolist() == list(range(bs * topk))
    assert draw != "permutation" or len(np.unique(sources)) == bs * topk


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


def test_a_step_shows_in_the_machine_code() -> None:
    vectors = GATHER.constants["token_bytes"] // 16
    built = {}
    for name in ("v1_vectorized", "v2_warp_per_token", "v3_loads_first"):
        code = module_file(GATHER, GATHER.variant(name), optimisation=QUICK)
        (built[name],) = sass.parse_sass(sass.cuobjdump(code, "-sass"))
    assert built["v1_vectorized"].loads[128] == vectors
    assert built["v1_vectorized"].stores == Counter({128: vectors})
    assert built["v2_warp_per_token"].loads_in_flight == 1
    assert built["v3_loads_first"].loads_in_flight == 2
    assert built["v3_loads_first"].in_flight_bytes == 2 * built["v2_warp_per_token"].in_flight_bytes


def test_a_team_is_pinned_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch is a stub here, whose parallel work starts two threads, as OpenMP does."""
    done = threading.Event()
    helpers = [threading.Thread(target=done.wait) for _ in range(2)]

    def start(one: int) -> None:
        for helper in helpers:
            helper.start()

    stub = SimpleNamespace(zeros=lambda count: SimpleNamespace(add_=start))
    monkeypatch.setitem(sys.modules, "torch", stub)
    cores = sorted(os.sched_getaffinity(0))
    module = load_python(GATHER, "torch_index_select_pinned")
    try:
        pinned: list[Any] = []
        module.PinnedTeam().run(lambda: pinned.append(os.sched_getaffinity(0)))
        pinned += [os.sched_getaffinity(helper.native_id or 0) for helper in helpers]
        assert pinned == [{cores[number % len(cores)]} for number in range(3)]
        assert sorted(os.sched_getaffinity(0)) == cores
    finally:
        done.set()
        sys.modules.pop(module.__name__, None)
