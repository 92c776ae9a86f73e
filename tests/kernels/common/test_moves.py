"""Moves of pieces: memory, layouts, the check of every byte, and the times behind other work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.study import Case
from kernels.common.moves import moving
from kernels.common.moves.workload import MARK_BYTES, Workload
from tests.kernels.cuda import array_of, install, outcome
from tests.kernels.moves import drawn, listed, move, python_module
from tests.kernels.stubbed import stubbed
from tests.repository import STUDIES

STUDY = STUDIES["transfers"]
LOOP = STUDY.variant("pinned_loop")


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch) -> Workload:
    install(monkeypatch)
    return Workload({}, drawn())


def bound(workload: Workload, case: Case, name: str = "pinned_list_loop") -> Any:
    workload.prepare(case)
    return workload.bind(STUDY.variant(name), stubbed(STUDY, name))


@pytest.mark.parametrize("direction", ["h2d", "d2h"])
@pytest.mark.parametrize(("size", "count"), [(1, 1), (3, 5), (64, 17), (5000, 3)])
def test_a_correct_method_passes(workload: Workload, direction: str, size: int, count: int) -> None:
    workload.prepare(move(size, count, direction))
    assert outcome(workload.bind(LOOP, python_module())) is None


def test_an_operation_that_never_ran_does_not_pass(workload: Workload) -> None:
    for direction in ("h2d", "d2h"):
        workload.prepare(move(16, 2, direction))
        operation = workload.bind(LOOP, python_module())
        operation.poison()
        assert operation.check() is not None


@pytest.mark.parametrize("name", ["pinned_list_loop", "pinned_list_batch"])
def test_every_piece_arrives_at_its_place(workload: Workload, name: str) -> None:
    for direction in ("h2d", "d2h"):
        for layouts in (("scattered", "scattered"), ("pitched", "packed"), ("packed", "scattered")):
            for size, count in ((1, 1), (7, 9), (4096, 3), (16, 250)):
                case = listed(size, count, direction, *layouts)
                operation = bound(workload, case, name)
                for _ in range(2):
                    assert outcome(operation) is None, case.id


def test_variants_of_a_case_share_its_pieces(workload: Workload) -> None:
    case = listed(32, 6)
    operation = bound(workload, case)
    kept = workload.source("pinned", "there").bytes.copy()
    other: Any = workload.bind(
        STUDY.variant("pinned_list_batch"), stubbed(STUDY, "pinned_list_batch")
    )
    assert operation.targets[0].device is other.targets[0].device
    assert (workload.source("pinned", "there").bytes == kept).all()


@pytest.mark.parametrize("direction", ["h2d", "d2h"])
def test_no_time_contains_the_work_before_the_pieces(workload: Workload, direction: str) -> None:
    operation = bound(workload, listed(64, 5, direction, busy=1))
    assert outcome(operation) is None
    mark: Any = workload._mark
    assert mark.nbytes == MARK_BYTES
    uses: list[Callable[[], object]] = [
        lambda: operation.launch(0),
        lambda: operation.launcher.time_launch(0, 0, 0),
        lambda: operation.method.cpu_times(0, 1),
    ]
    for use in uses:
        mark.fill(1)
        use()
        assert not array_of(mark).any()
    submit_s, host_s = operation.launcher.time_launch(0, 0, 0)
    assert 0 <= submit_s < 0.25
    assert host_s == 0.25  # between any two events of the stub


def test_cpu_times_of_short_calls_are_taken_more_often(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = bound(workload, listed(64, 5))
    samples = operation.own_samples(0, 2)["cpu_time"]
    assert len(samples) == moving.CPU_CALLS and min(samples) >= 0
    monkeypatch.setattr(moving, "SHORT_CALL_S", 0.0)
    assert len(operation.own_samples(0, 2)["cpu_time"]) == 2
    assert bound(workload, move(64, 5, "h2d")).own_samples(0, 2) == {}


def test_places_are_distinct_and_scattered_ones_in_no_order(workload: Workload) -> None:
    workload.prepare(listed(64, 500, host="scattered", device="pitched"))
    host, device = workload.on_host.offsets, workload.on_device.offsets
    assert len(set(host.tolist())) == 500
    assert (np.diff(host) < 0).any()
    assert set(np.diff(device).tolist()) == {128}


def test_a_blocked_stream_is_only_for_operations_that_can_be_enqueued(workload: Workload) -> None:
    def waits(name: str, count: int) -> bool | None:
        workload.prepare(move(16, count, "h2d"))
        return workload.bind(STUDY.variant(name), python_module()).waits

    assert waits("pinned_loop", 32) is False
    assert waits("pinned_loop", 33) is True
    assert waits("pinned_packed", 1) is True


@pytest.mark.parametrize(
    ("case", "field"),
    [
        (listed(0, 1), "size"),
        (move(1, 0, "h2d"), "count"),
        (listed(1, 1, host="round"), "layout"),
        (listed(1, 1, "up"), "direction"),
        (Case({"size": "big", "count": 1, "direction": "h2d"}, 1, "full"), "case size=big"),
    ],
)
def test_impossible_pieces_are_an_error(workload: Workload, case: Case, field: str) -> None:
    with pytest.raises(FieldError, match=field):
        workload.prepare(case)
        workload.bind(LOOP, python_module())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 0}, "size: expected at least 1, got 0"),
        ({"count": 0}, "count: expected at least 1, got 0"),
        ({"pitch": 7}, "pitch: expected at least the size, got 7"),
        ({"blocks": -1}, "blocks: expected at least 0, got -1"),
        ({"host": 0}, "host: expected an address, got 0"),
    ],
)
def test_bindings_reject_invalid_arguments(change: dict[str, int], message: str) -> None:
    arguments = {"host": 16, "device": 16, "size": 8, "pitch": 8} | change
    with pytest.raises(ValueError, match=message):
        stubbed(STUDY, "pinned_loop").bind(**arguments)
