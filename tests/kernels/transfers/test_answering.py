"""Measured times by situation, the pools and the line that answers are made from."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.transfers.answering import ANY, Measured, Place, measured
from kernels.transfers.calls import simplest_first
from kernels.transfers.kinds import MEMORIES, memory_of, method_of
from kernels.transfers.line import fit_line
from kernels.transfers.measured import moves
from kernels.transfers.pools import Gather, Pools, RowSeconds, reach_bytes
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
def test_an_exact_line_is_found_and_a_misfit_is_one_to_either_side(
    latency: float, bandwidth: float
) -> None:
    seconds = latency + SIZES / bandwidth
    line = fit_line(SIZES, seconds)
    assert line is not None and line.misfit < 1e-4
    assert line.latency.value == pytest.approx(latency, rel=1e-4)
    assert line.bandwidth.value == pytest.approx(bandwidth, rel=1e-4)
    assert line.half_size.value == pytest.approx(latency * bandwidth, rel=1e-4)
    for factor in (0.5, 2.0):
        bent = seconds * np.where(SIZES == 2**20, factor, 1)
        found = fit_line(SIZES, bent)
        assert found is not None
        assert found.misfit == pytest.approx(np.abs(found.seconds(SIZES) / bent - 1).max())


def test_intervals_contain_the_true_value_as_often_as_stated() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        line = fit_line(SIZES, (8e-6 + SIZES / 5e10) * rng.lognormal(0, 0.02, len(SIZES)))
        assert line is not None
        held += line.latency.low <= 8e-6 <= line.latency.high
    assert 0.88 < held / 300 < 0.99
    assert fit_line(SIZES[:3], SIZES[:3]) is None


GIB = 2**30
REACH = 0.6 * GIB


def row_seconds(*pools: float) -> RowSeconds:
    """Seconds of a row: its bytes, or the walks of those that the pool's translations miss."""
    return {
        (int(pool * GIB), size): max(size / 50e9, 4e-8 * (1 - REACH / (pool * GIB)))
        for pool in pools
        for size in (128, 656, 1024)
    }


def test_the_reach_is_found_and_a_machine_without_one_has_the_smallest_of_the_others() -> None:
    assert reach_bytes(row_seconds(0.2, 1, 2, 4, 16, 40)) == pytest.approx(REACH, rel=0.01)
    assert math.isnan(reach_bytes(row_seconds(0.2, 0.5, 1))), "one pool with page walks"
    pools = Pools({"one": 2.0, "two": 3.0}, [])
    assert (pools.reach("two"), pools.reach("three")) == (3.0, 2.0)
    assert Pools({}, []).reach("three") is None


def test_a_pool_beyond_the_reach_is_refused() -> None:
    pools = Pools({"box": GIB}, [Gather("box", "way", 656, 2048, 40 * GIB, 5e-5)])
    assert pools.refusal("box", 656, 2048, GIB) == ""
    assert pools.refusal("box", 656, 2048, 40 * GIB) == (
        "not measured: lists in a pool of 40 GiB, beyond the 1024 MiB that a GPU's translations"
        " cover. The nearest gather to the device, in the study pool_gather: 2048 × 656 B from"
        " 40 GiB in 50.00 µs, by way"
    )
    nothing = Pools({}, [])
    assert nothing.refusal("box", 1024, 1024, 2**20) == "", "the pieces fill it"
    assert nothing.refusal("box", 1024, 1024, 2**21) == "not measured: lists in a pool of 2 MiB"
