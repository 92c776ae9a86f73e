"""Measured times by situation, as answers are made from them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from kernels.transfers.answering import ANY, Place, measured
from kernels.transfers.calls import simplest_first
from kernels.transfers.kinds import MEMORIES, memory_of, method_of
from kernels.transfers.measured import moves
from tests.repository import STUDIES

TRANSFERS = STUDIES["transfers"]


def summary(seconds: Callable[[str, int, int], float | None], machine: str = "box") -> pd.DataFrame:
    """A summary of every variant and case for which `seconds` returns a time."""
    rows = [
        {
            "machine": machine,
            "study": "transfers",
            "variant": variant.name,
            "case": case.id,
            "metric": "host_time",
            "unit": "s",
            "median": time,
            "ci_low": time * 0.99,
            "ci_high": time * 1.01,
            "verified": 1,
            "stale": 0,
        }
        for variant in TRANSFERS.variants
        for case in variant.cases
        if "direction" in case.values
        and "streams" not in case.values
        and "count" in case.values
        and (time := seconds(variant.name, case.number("size"), case.number("count"))) is not None
    ]
    return pd.DataFrame(rows)


def test_no_time_is_shorter_than_the_link_needs() -> None:
    table = summary(lambda name, size, count: 1e-9)
    block = Place("box", "pinned", "h2d", "packed", "packed")
    free, limited = (measured(TRANSFERS, table, links)[block] for links in ({}, {"box": 50e9}))
    assert set(free.times[2**24, 1].values()) == {1e-9}
    assert set(limited.times[2**24, 1].values()) == {2**24 / 50e9}
    assert limited.times[1, 1]["pinned_loop"] == 1e-9


def test_one_piece_has_no_layout_and_any_memory_is_readable() -> None:
    found = measured(TRANSFERS, summary(lambda name, size, count: 1e-6), {})
    for place, here in found.items():
        assert {count == 1 for _, count in here.times} == {place.layout == "one block"}
    block = found[Place("box", ANY, "h2d", "packed", "packed")]
    known = set(block.times[2**24, 1])
    assert {"pageable_loop", "pinned_loop"} <= known and "write_combined_loop" not in known
    answer = block.answer(2**24, 1)
    assert answer is not None and answer.way == "pageable_loop"


def test_sizes_of_several_pieces_are_multiples() -> None:
    found = measured(TRANSFERS, summary(lambda name, size, count: 1e-6), {})
    assert found[Place("box")].answer(528, 16) and not found[Place("box")].answer(520, 16)
    assert found[Place("box", host="packed", device="packed")].answer(520, 1)


def test_every_way_has_its_place_in_the_order() -> None:
    rows = moves(TRANSFERS, summary(lambda name, size, count: 1e-6))
    assert len(simplest_first(set(rows["variant"]))) > 15
    some = ["pinned_list_gather", "pinned_loop", "pinned_list_batch", "pageable_loop"]
    assert simplest_first(some) == [some[3], some[1], some[2], some[0]]


@pytest.mark.parametrize(("column", "value"), [("stale", 1), ("verified", 0)])
def test_stale_and_unchecked_rows_do_not_count(column: str, value: int) -> None:
    assert moves(TRANSFERS, summary(lambda name, size, count: 1e-6).assign(**{column: value})).empty


def test_ways_of_timing_are_not_ways_of_moving() -> None:
    rows = moves(TRANSFERS, summary(lambda name, size, count: 1e-6))
    assert {"pinned_loop", "pageable_packed", "registered_huge_loop"} <= set(rows["variant"])
    assert not {"pinned_nvbandwidth", "pinned_profiled", "pinned_step_on_host"} & set(
        rows["variant"]
    )
    keys = ["variant", "size", "count", "direction", "host", "device", "busy"]
    assert not rows.duplicated(keys).any()


def test_managed_memory_is_never_advised() -> None:
    rows = moves(TRANSFERS, summary(lambda name, size, count: 1e-6))
    assert set(rows["memory"]) == set(MEMORIES)


def test_names_of_variants_are_memory_and_method() -> None:
    assert (memory_of("registered_huge_loop"), method_of("registered_huge_loop")) == (
        "registered_huge",
        "loop",
    )
    assert memory_of("managed_loop") == "managed"
    assert memory_of("loop") == ""
