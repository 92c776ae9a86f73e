"""The transfers' pieces, and the check of every way of moving them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.measure.cell import Operation, Skip
from analysis.study import Case
from kernels.common import host_memory
from kernels.transfers.kinds import memory_of
from tests.kernels.device import outcome
from tests.kernels.transfers.fake import (
    TRANSFERS,
    WORK,
    WORKLOADS,
    move,
    python_module,
)


@pytest.mark.parametrize("direction", ["h2d", "d2h"])
@pytest.mark.parametrize(("size", "count"), [(1, 1), (3, 5), (64, 17), (5000, 3)])
def test_a_correct_method_passes(workload: Any, direction: str, size: int, count: int) -> None:
    workload.prepare(move(size, count, direction))
    variant = TRANSFERS.variant("pinned_loop")
    assert outcome(workload.bind(variant, python_module())) is None


@pytest.mark.parametrize(
    ("direction", "fault"),
    [
        *(("h2d", fault) for fault in ("short", "long", "bit", "before")),
        *(("d2h", fault) for fault in ("short", "long", "bit", "before", "gap")),
    ],
)
def test_the_check_finds_a_wrong_method(workload: Any, direction: str, fault: str) -> None:
    workload.prepare(move(32, 4, direction))
    operation = workload.bind(TRANSFERS.variant("pinned_loop"), python_module(fault))
    assert outcome(operation) is not None
    # The bytes of an earlier launch must not make it pass, either.
    workload.prepare(move(32, 4, direction))
    assert outcome(workload.bind(TRANSFERS.variant("pinned_loop"), python_module())) is None


def test_an_operation_that_never_ran_does_not_pass(workload: Any) -> None:
    for direction in ("h2d", "d2h"):
        workload.prepare(move(16, 2, direction))
        operation = workload.bind(TRANSFERS.variant("pinned_loop"), python_module())
        operation.poison()
        assert operation.check() is not None


@pytest.mark.parametrize(
    ("case", "field"),
    [
        (move(0, 1, "h2d"), "case size=0,count=1,direction=h2d: size"),
        (move(1, 0, "h2d"), "case size=1,count=0,direction=h2d: count"),
        (move(1, 1, "up"), "direction"),
        (Case({"size": "big", "count": 1, "direction": "h2d"}, 1, "full"), "case size=big"),
    ],
)
def test_impossible_pieces_are_an_error(workload: Any, case: Case, field: str) -> None:
    workload.prepare(Case(case.values, 1, "default"))
    with pytest.raises(FieldError) as caught:
        workload.bind(TRANSFERS.variant("pinned_loop"), python_module())
    assert caught.value.field.startswith(field)


def test_a_blocked_stream_is_only_for_operations_that_can_be_enqueued(workload: Any) -> None:
    def waits(name: str, memory: str, count: int) -> bool | None:
        workload.prepare(move(16, count, "h2d"))
        module = python_module()
        module.memory = memory
        operation: Operation = workload.bind(TRANSFERS.variant(name), module)
        return operation.waits

    assert waits("pinned_loop", "pinned", 32) is False
    assert waits("pinned_loop", "pinned", 33) is True
    assert waits("pageable_loop", "pageable", 1) is True
    assert waits("pinned_packed", "pinned", 1) is True


def test_no_huge_pages_skips_the_case(workload: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: str, size: int) -> None:
        raise host_memory.NoHugePages("none")

    monkeypatch.setattr(WORKLOADS, "HostMemory", refuse)
    workload.prepare(move(16, 1, "h2d"))
    with pytest.raises(Skip, match="none"):
        workload.bind(TRANSFERS.variant("registered_huge_loop"), python_module())


@given(words=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8), rounds=st.integers(0, 9))
def test_work_is_its_rounds_one_by_one(words: list[int], rounds: int) -> None:
    payload = np.array(words, np.uint32).view(np.uint8)
    expected = words
    for _ in range(rounds):
        expected = [(w * WORK.FACTOR + WORK.TERM) % 2**32 for w in expected]
    assert WORK.worked_on(payload, rounds).view(np.uint32).tolist() == expected


def test_the_work_is_the_same_on_both_sides() -> None:
    for header in ("round_trip.h", "step.h"):
        text = (TRANSFERS.folder / header).read_text()
        constants = dict(re.findall(r"constexpr uint32_t (k\w+) = (\d+);", text))
        assert constants == {"kFactor": str(WORK.FACTOR), "kTerm": str(WORK.TERM)}


def test_variants_are_named_after_their_memory() -> None:
    for variant in TRANSFERS.variants:
        text = variant.path.read_text()
        found = re.search(r"Memory kMemory = Memory::k(\w+);|^memory = \"(\w+)\"", text, re.M)
        if found is None:
            assert variant.path.stem == "profiled"  # it serves memory of any kind
            assert memory_of(variant.name)
            continue
        written = found[2] or re.sub(r"(?<!^)(?=[A-Z])", "_", found[1]).lower()
        assert memory_of(variant.name) == written


def test_a_file_for_any_memory_gets_that_of_the_variants_name(workload: Any) -> None:
    module = python_module()
    del module.memory
    workload.prepare(move(16, 1, "d2h"))
    for kind in ("pinned", "pageable"):
        operation = workload.bind(TRANSFERS.variant(f"{kind}_profiled"), module)
        assert operation.host.kind == kind
        assert outcome(operation) is None
