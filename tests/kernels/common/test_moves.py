"""Moves of pieces: their places, and the times behind other work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch) -> Workload:
    install(monkeypatch)
    return Workload({}, drawn())


def bound(workload: Workload, case: Case, name: str = "pinned_list_loop") -> Any:
    workload.prepare(case)
    return workload.bind(STUDY.variant(name), stubbed(STUDY, name))


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
        workload.bind(STUDY.variant("pinned_loop"), python_module())
