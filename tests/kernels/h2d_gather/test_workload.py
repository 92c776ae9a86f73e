"""The rows that the gather draws, what must arrive, and the team of index_select."""

from __future__ import annotations

import os
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

GATHER = STUDIES["h2d_gather"]
WORKLOADS = load_python(GATHER, "workload")


@given(
    cases=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 16)), min_size=1, max_size=3),
    spare=st.integers(0, 20),
    draw=st.sampled_from(["permutation", "with_replacement"]),
    seed=st.integers(0, 2**32),
)
def test_drawn_rows_are_in_range_and_the_reference_is_the_plain_loop(
    cases: list[tuple[int, int]], spare: int, draw: str, seed: int
) -> None:
    rng, slots = np.random.default_rng(seed), 128 + spare
    src = rng.integers(0, 256, (slots, 3), np.uint8)
    reference = WORKLOADS.Reference(slots, 3)
    for bs, topk in cases:  # whatever came before
        case = Case({"bs": bs, "topk": topk, "draw": draw}, 0, "default")
        pairs = WORKLOADS.draw_pairs(case, slots, rng)
        sources, destinations = pairs.reshape(-1, 2).T
        assert pairs.dtype == np.int32 and 0 <= sources.min() <= sources.max() < slots
        assert destinations.tolist() == list(range(bs * topk))
        assert draw != "permutation" or len(np.unique(sources)) == bs * topk
        reference.gather(src, sources)
        poison = [[WORKLOADS.POISON] * 3] * (slots - len(sources))
        assert reference.bytes.tolist() == [src[source].tolist() for source in sources] + poison


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
