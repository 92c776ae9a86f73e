"""Measured times by situation, the pools and the line that answers are made from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.transfers.answering import ANY, Measured, Place, measured, simplest_first
from kernels.transfers.charts import fit_line
from kernels.transfers.kinds import MEMORIES, memory_of, method_of
from kernels.transfers.measured import moves
from tests.kernels.transfers.fake import TRANSFERS

KEYS = ["variant", "size", "count", "direction", "host", "device", "busy"]


def summary(seconds: float = 1e-6) -> pd.DataFrame:
    """A summary in which every variant that moves pieces takes as long."""
    rows = [
        {"machine": "box", "study": "transfers", "variant": variant.name, "case": case.id}
        for variant in TRANSFERS.variants
        for case in variant.cases
        if {"direction", "count"} <= case.values.keys() and "streams" not in case.values
    ]
    table = pd.DataFrame(rows).assign(metric="host_time", unit="s", verified=1, stale=0)
    return table.assign(median=seconds, ci_low=seconds, ci_high=seconds)


def answers(**links: float) -> dict[Place, Measured]:
    return measured(TRANSFERS, summary(1e-9), links)


def test_no_time_is_shorter_than_the_link_needs() -> None:
    block = Place("box", "pinned", "h2d", "packed", "packed")
    free, limited = (found[block].times for found in (answers(), answers(box=50e9)))
    assert set(free[2**24, 1].values()) == {1e-9}
    assert set(limited[2**24, 1].values()) == {2**24 / 50e9}
    assert limited[1, 1]["pinned_loop"] == 1e-9


def test_one_piece_has_no_layout_and_any_memory_is_readable() -> None:
    found = answers()
    for place, here in found.items():
        assert {count == 1 for _, count in here.times} == {place.layout == "one block"}
    block = found[Place("box", ANY, "h2d", "packed", "packed")]
    known = set(block.times[2**24, 1])
    assert {"pageable_loop", "pinned_loop"} <= known and "write_combined_loop" not in known
    answer = block.answer(2**24, 1)
    assert answer is not None and answer.way == "pageable_loop"
    assert found[Place("box")].answer(528, 16) and not found[Place("box")].answer(520, 16)
    assert found[Place("box", host="packed", device="packed")].answer(520, 1)


def test_ways_of_moving_are_those_that_are_checked_and_no_ways_of_timing() -> None:
    rows = moves(TRANSFERS, summary())
    assert set(rows["memory"]) == set(MEMORIES)
    ways = set(rows["variant"])
    assert {"pinned_loop", "pageable_packed", "registered_huge_loop"} <= ways
    assert not {"pinned_nvbandwidth", "pinned_profiled", "pinned_step_on_host"} & ways
    assert not rows.duplicated(KEYS).any()
    assert len(simplest_first(ways)) > 15
    some = ["pinned_list_gather", "pinned_loop", "pinned_list_batch", "pageable_loop"]
    assert simplest_first(some) == [some[3], some[1], some[2], some[0]]
    assert moves(TRANSFERS, summary().assign(stale=1)).empty
    assert moves(TRANSFERS, summary().assign(verified=0)).empty


def test_variants_are_named_after_their_memory_and_method() -> None:
    for variant in TRANSFERS.variants:
        memory = memory_of(variant.name)
        assert variant.name == f"{memory}_{method_of(variant.name)}"
        assert variant.options.get("memory", memory) == memory


SIZES = np.array([1, 65536, 2**20, 2**24, 2**26], dtype=float)


@given(latency=st.floats(1e-6, 1e-4), bandwidth=st.floats(1e9, 1e11))
def test_an_exact_line_is_found(latency: float, bandwidth: float) -> None:
    line = fit_line(SIZES, latency + SIZES / bandwidth)
    assert line == pytest.approx((latency, bandwidth), rel=1e-4)
    assert fit_line(SIZES[:3], SIZES[:3]) is None
