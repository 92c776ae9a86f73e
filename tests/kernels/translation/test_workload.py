"""Where the reads of a launch go, and what they must deliver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.measure.cell import Skip
from analysis.study import Case
from kernels.common.large_pool import LargePool
from tests.kernels.translation.fake import (
    MIB,
    POOLS,
    TRANSLATION,
    WORKLOADS,
    Reader,
    fake_workload,
    lines,
    rows,
)

CASES = [
    ("independent_lines", lines(256, 4, 500, "ascending")),
    ("independent_lines", lines(3, 1024, 70)),
    ("independent_lines", lines(16, 64, 40, memory="pinned")),
    ("dependent_lines", lines(16, 64, 50, read=16)),
    ("rows", rows(128, 8192)),
    ("rows", rows(4096, 200, "ascending")),
    ("copy_engine", rows(656, 40)),
    ("copy_engine", rows(1024, 1000)),
]


def bound(monkeypatch: pytest.MonkeyPatch, name: str, case: Case) -> Any:
    """The variant bound to the case and launched, and the module that it launches."""
    reader = Reader("lines" if "lines" in name else "rows")
    inputs = fake_workload(monkeypatch).prepare(case)
    operation = inputs.bind(TRANSLATION.variant(name), reader)
    operation.inputs = inputs  # whose pool and places are read at their addresses
    operation.poison()
    operation.launch(0)
    return operation, reader


@pytest.mark.parametrize(("name", "case"), CASES, ids=lambda it: getattr(it, "id", it))
def test_what_is_read_is_what_the_pool_holds(
    monkeypatch: pytest.MonkeyPatch, name: str, case: Case
) -> None:
    operation, _ = bound(monkeypatch, name, case)
    assert operation.check() is None
    if name == "copy_engine":
        assert case.payload_bytes - 16 * WORKLOADS.PIECES < len(operation.expected)
        assert len(operation.expected) <= case.payload_bytes


def test_launches_go_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    operation, reader = bound(monkeypatch, "independent_lines", lines(4, 64, 512))
    for _ in range(5):
        operation.launch(0)
    # 4 addresses of 512 lines are read by 4 launches; the first of them was the check's.
    assert reader.firsts == [0, 512, 1024, 1536, 512, 1024]
    operation.poison()
    operation.launch(0)
    assert operation.check() is None
    monkeypatch.setattr(WORKLOADS, "MIN_DRAWN_ROWS", 160)
    operation, reader = bound(monkeypatch, "rows", rows(656, 40))
    for _ in range(5):
        operation.launch(0)
    assert reader.firsts == [0, 40, 80, 120, 160, 40], "a draw for each launch"


@pytest.mark.parametrize("order", ["random", "ascending"])
@pytest.mark.parametrize("count", [1, 40, 1598])
def test_rows_of_a_draw_are_distinct_and_in_their_order(
    order: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WORKLOADS, "MIN_DRAWN_ROWS", 4096)
    walk = WORKLOADS.Walk(rows(656, count, order), np.random.default_rng(0))
    draws = walk.places.reshape(-1, count)
    assert len(draws) > max(WORKLOADS.MIN_DRAWS, WORKLOADS.MIN_DRAWN_ROWS // count)
    assert 0 <= draws.min() <= draws.max() < MIB // 656
    for draw in draws:
        assert len(np.unique(draw)) == count
        assert (order == "ascending" or count == 1) == bool((np.diff(draw) > 0).all())
    if 1 < count < MIB // 656:
        assert len(np.unique(draws, axis=0)) > 1


def test_a_walk_reads_no_line_twice_before_it_has_read_all() -> None:
    walk = WORKLOADS.Walk(lines(16, 64, 16 * 512), np.random.default_rng(0))
    numbers = walk.checked()
    assert sorted(numbers.tolist()) == list(range(16 * 512))
    assert sorted((numbers[:16] // 512).tolist()) == list(range(16))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (lines(0, 64, 10), "count: expected 1 to 2\\^31, got 0"),
        (lines(2**31, 64, 10), "count: expected 1 to 2\\^31"),
        (lines(10, -4, 10), "stride_kib: expected 1 to 2\\^31, got -4"),
        (lines(10, 64, 0), "reads: expected 1 to 2\\^31, got 0"),
        (lines(10, 64, 10, "sideways"), "order: expected one of .*'sideways'"),
        (lines(10, 64, 10, read=20), "a multiple of 16 B in each read, got 20"),
        (rows(656, 1600), "rows: expected at most 1598, got 1600"),
        (rows(656, 0), "rows: expected 1 to 2\\^31, got 0"),
        (rows(4096, 513), "at most 2097152 B"),
        (lines(2**24, 64, 10), "fewer than 2\\^32 lines"),
    ],
    ids=lambda it: getattr(it, "id", None),
)
def test_a_case_that_makes_no_sense_is_an_error(
    monkeypatch: pytest.MonkeyPatch, case: Case, message: str
) -> None:
    with pytest.raises(FieldError, match=message):
        fake_workload(monkeypatch).prepare(case)


def test_a_pool_that_is_refused_is_made_smaller_and_asked_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def made(size: int, rng: np.random.Generator, memory: str) -> LargePool:
        asked.append(size)
        if size > MIB or memory == "host_numa":
            raise Skip("no memory can be page-locked")
        return LargePool(size, rng, memory)

    workload = fake_workload(monkeypatch)
    monkeypatch.setattr(POOLS, "LargePool", made)
    workload.prepare(lines(16, 64, 10))
    with pytest.raises(Skip, match="no memory can be page-locked"):
        workload.prepare(lines(32, 64, 10))
    assert asked == [4 * MIB, 2 * MIB, MIB]
    for _ in range(2):
        with pytest.raises(Skip, match="host_numa memory: no memory"):
            workload.prepare(lines(16, 64, 10, memory="host_numa"))
    assert asked == 2 * [4 * MIB, 2 * MIB, MIB]
    workload = fake_workload(monkeypatch)
    monkeypatch.setattr(POOLS, "largest_pool", lambda: 2 * MIB + 5)
    with pytest.raises(Skip, match=r"needs 3145728 B .*this host allows a pool of 2097152 B"):
        workload.prepare(lines(48, 64, 10))


def test_every_case_of_the_study_can_be_walked_without_a_line_read_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(WORKLOADS, "MIN_DRAWN_ROWS", 40)
    constants, rng = TRANSLATION.constants, np.random.default_rng(0)
    for case in {case.id: case for one in TRANSLATION.variants for case in one.cases}.values():
        assert case.payload_bytes <= constants["largest_bytes"]
        if "rows" in case.values:
            payload = 10 * case.payload_bytes // case.number("rows")
            case = replace(case, values={**case.values, "rows": 10}, payload_bytes=payload)
        else:
            at_address = min(case.number("stride_kib"), 64) * 1024 // 128
            assert case.number("reads") <= case.number("count") * at_address
        walk = WORKLOADS.Walk(case, rng)
        pool = constants["kinds_mib" if "memory" in case.values else "pool_mib"]
        assert walk.extent <= pool * MIB
        assert len(walk.places) * walk.span + walk.reads < 2**32
