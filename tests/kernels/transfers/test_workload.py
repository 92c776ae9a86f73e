"""What transfers add to moves of pieces: host code of variants, work on the data, and prices."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.base.errors import FieldError
from analysis.measure.cell import PythonLauncher, Skip
from analysis.study import Case
from kernels.common.host_memory import HostMemory
from tests.kernels.cuda import outcome
from tests.kernels.moves import listed, move, python_module
from tests.kernels.stubbed import stubbed
from tests.kernels.transfers.fake import PRICE, TRANSFERS, WORK
from tests.kernels.transfers.fake import workload as workload

SIZES = ((1, 1), (7, 9), (4096, 3), (5000, 40))


def bound(workload: Any, name: str, case: Case, module: Any = None) -> Any:
    workload.prepare(case)
    return workload.bind(TRANSFERS.variant(name), module or stubbed(TRANSFERS, name))


@pytest.mark.parametrize(
    "name",
    [
        *("pinned_loop", "pinned_packed", "pinned_batch"),
        *(pytest.param(name, marks=pytest.mark.long) for name in ("pinned_2d", "pinned_graph")),
    ],
)
def test_host_methods_move_every_piece(workload: Any, name: str) -> None:
    for size, count in SIZES:
        for direction in ("h2d", "d2h"):
            operation = bound(workload, name, move(size, count, direction))
            assert [outcome(operation) for _ in range(2)] == [None, None]
            assert operation.own_samples(0, 1) == {}


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_pack_every_piece(workload: Any, threads: int) -> None:
    for size, count in (*SIZES, (4096, 90)):
        for direction in ("h2d", "d2h"):
            for name in ("pinned_list_packed", "pinned_list_packed_1"):
                operation = bound(workload, name, listed(size, count, direction, threads=threads))
                assert [outcome(operation) for _ in range(3)] == [None] * 3
    with pytest.raises(ValueError, match="device: expected packed pieces"):
        bound(workload, "pinned_list_packed", listed(16, 9, device="scattered"))


def test_both_directions_at_once_move_every_piece_both_ways(workload: Any) -> None:
    operation = bound(workload, "pinned_loop", move(5000, 1, "both"))
    assert outcome(operation) is None
    for target in operation.targets:
        target.poison()
        assert operation.check() is not None
        operation.launch(0)
    submit_s, host_s = operation.launcher.time_launch(0, 0, 0)
    assert 0 <= submit_s <= host_s


def test_a_step_by_the_cpu_changes_the_data_in_place(workload: Any) -> None:
    operation = bound(workload, "pinned_step_on_host", move(4096, 1, "in_place"))
    assert [outcome(operation) for _ in range(2)] == [None, None]
    (seconds,) = operation.own_samples(0, 1)["step_time"]
    assert seconds > 0
    operation.launch(0)
    assert operation.check() is not None  # a second step on the same data


def test_an_unknown_direction_is_an_error(workload: Any) -> None:
    with pytest.raises(FieldError, match="round_trip"):
        bound(workload, "pinned_loop", move(1, 1, "up"), python_module())


def test_a_stream_with_pageable_copies_is_not_held(workload: Any) -> None:
    assert bound(workload, "pageable_loop", move(16, 1, "h2d"), python_module()).waits is True


def test_a_tensor_moves_other_bytes_and_leaves_the_pieces_to_the_next_variant(
    workload: Any,
) -> None:
    case = move(64, 1, "h2d")
    workload.prepare(case)
    source = workload.source("pageable", "there").bytes[4096 : 4096 + 64]
    tensor = SimpleNamespace()

    def launch(stream: int) -> None:
        host = source.copy()
        tensor.output = SimpleNamespace(
            cpu=lambda: SimpleNamespace(numpy=lambda: host),
            fill_=lambda byte: SimpleNamespace(cpu=lambda: None),
        )

    tensor.launch, tensor.output = launch, None
    module = SimpleNamespace(bind=lambda *_, **__: tensor)
    operation = workload.bind(TRANSFERS.variant("pageable_torch_to"), module)
    assert isinstance(operation.launcher, PythonLauncher)
    assert outcome(operation) is None
    assert (source != workload.payload("there")).any()
    assert outcome(workload.bind(TRANSFERS.variant("pageable_loop"), python_module())) is None


def test_the_work_is_the_same_on_both_sides() -> None:
    for header in ("round_trip.h", "step.h"):
        text = (TRANSFERS.folder / header).read_text()
        constants = dict(re.findall(r"constexpr uint32_t (k\w+) = (\d+);", text))
        assert constants == {"kFactor": str(WORK.FACTOR), "kTerm": str(WORK.TERM)}


def test_a_price_is_that_of_its_parts(workload: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    is_locked = {"answer": True}
    monkeypatch.setattr(HostMemory, "is_page_locked", lambda self: is_locked["answer"])
    operation = bound(
        workload, "registered_price", Case({"size": 5000}, 0, "full"), python_module()
    )
    assert outcome(operation) is None
    samples = operation.own_samples(0, 2)
    parts = ("allocate", "register", "free", "write", "read")
    assert samples.keys() == {f"{part}_time" for part in parts}
    assert len(samples["allocate_time"]) == 2 and min(samples["allocate_time"]) > 0
    is_locked["answer"] = False
    assert outcome(operation) == "page-locked: expected True, got False"


def test_work_beside_held_memory_is_compared_with_work_before_and_after(
    workload: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: set[int] = set()

    class Held(HostMemory):
        def __init__(self, kind: str, size: int) -> None:
            super().__init__(kind, size)
            held.add(id(self))

        def close(self) -> None:
            held.discard(id(self))
            super().close()

    def seconds(work: Callable[[], object]) -> float:
        work()
        return 0.03 if held else 0.02

    monkeypatch.setattr(PRICE, "WORK_BYTES", 4096)
    monkeypatch.setattr(PRICE, "HostMemory", Held)
    monkeypatch.setattr(PRICE, "_seconds", seconds)
    operation = bound(
        workload, "pinned_pressure", Case({"held_bytes": 4096}, 0, "full"), python_module()
    )
    assert outcome(operation) is None
    samples = operation.own_samples(0, 3)
    assert samples == {"work_time": [0.03], "work_share": [pytest.approx(1.5)]}
    assert not held
    monkeypatch.setattr(PRICE, "allocatable_bytes", lambda: 100)
    assert PRICE.Pressure("registered_huge", 25).check() is not None  # nothing ran
    with pytest.raises(Skip, match="26 B is more than a quarter of 100 B"):
        PRICE.Pressure("registered_huge", 26)
