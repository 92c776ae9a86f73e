"""The kernel beside the gather, on a GPU whose clock only work moves."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.base.errors import FieldError
from analysis.measure.cell import PythonLauncher, Skip
from kernels.common import neighbours as NEIGHBOURS
from tests.kernels.pool_gather.fake import POOL, WORKLOADS, case, fake_workload, python_module

WORK_S, STREAM = 0.004, 7


class Clock:
    """A fake torch.cuda of a GPU on which gathers make other work `slower`."""

    def __init__(self, slower: float) -> None:
        self.slower, self.now, self.is_gathering = slower, 0.0, False
        self.launches = self.most_in_flight = self.in_flight = 0

    def work(self) -> None:
        self.now += WORK_S * (self.slower if self.is_gathering else 1)

    def launch(self, stream: int) -> None:
        assert stream == STREAM
        self.is_gathering = True
        self.launches += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def end_gathers(self) -> None:
        self.is_gathering, self.in_flight = False, 0

    def Stream(self, priority: int) -> object:
        return object()

    def ExternalStream(self, address: int) -> Any:
        assert address == STREAM
        return SimpleNamespace(synchronize=self.end_gathers)

    def stream(self, stream: object) -> Any:
        return nullcontext()

    def Event(self, enable_timing: bool = False) -> Any:
        clock = self

        class Event:
            asked, at = 0, 0.0

            def record(self, stream: object) -> None:
                self.at = clock.now

            def synchronize(self) -> None:
                clock.in_flight -= not enable_timing

            def query(self) -> bool:
                self.asked += 1
                return self.asked > 5

            def elapsed_time(self, end: Any) -> float:
                return float(end.at - self.at) * 1e3

        return Event()


def test_the_slowdown_is_that_of_work_among_gathers(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(slower=1.25)
    beside = NEIGHBOURS.Neighbour(clock, clock.work)
    assert beside._alone_s() == pytest.approx(NEIGHBOURS.ALONE_S, rel=0.2)
    assert beside.slowdown(clock.launch, STREAM) == pytest.approx(1.25)
    assert clock.launches > 5 and clock.in_flight == 0
    assert clock.most_in_flight <= NEIGHBOURS.MOST_IN_FLIGHT + 1
    monkeypatch.setattr(WORKLOADS, "neighbour", lambda kind: beside)
    at = case()
    at.values["beside"] = "gemm"  # type: ignore[index]
    operation = fake_workload(monkeypatch).prepare(at).bind(POOL.variant("sorted"), python_module())
    monkeypatch.setattr(operation, "launcher", PythonLauncher(clock.launch))
    found = operation.own_samples(STREAM, 3)["neighbour_slowdown"]
    assert found == pytest.approx([1.25] * 3)


def test_an_unknown_neighbour_is_an_error_and_a_missing_pytorch_skips(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(FieldError, match=r"beside: expected .*gemm.*memory"):
        NEIGHBOURS.neighbour("sleep")
    with pytest.raises(Skip, match="needs PyTorch"):
        NEIGHBOURS.neighbour("gemm")
