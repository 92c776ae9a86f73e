"""The kernel beside the gather, on a GPU whose clock only work moves."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from kernels.common import neighbours as NEIGHBOURS

WORK_S, SLOWER = 0.004, 1.25


class Clock:
    """A fake torch.cuda of a GPU on which gathers make other work slower."""

    def __init__(self) -> None:
        self.now, self.in_flight, self.most_in_flight = 0.0, 0, 0
        nothing: Any = lambda *_, **__: nullcontext()  # noqa: E731
        self.Stream = self.stream = nothing

    def work(self) -> None:
        self.now += WORK_S * (SLOWER if self.in_flight else 1)

    def launch(self, stream: int) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def ExternalStream(self, address: int) -> Any:
        return SimpleNamespace(synchronize=lambda: setattr(self, "in_flight", 0))

    def Event(self, enable_timing: bool = False) -> Any:
        event, polls = SimpleNamespace(at=0.0), iter(range(99))

        def end() -> None:
            self.in_flight -= not enable_timing

        event.record = lambda stream: setattr(event, "at", self.now)
        event.synchronize, event.query = end, lambda: next(polls) > 5
        event.elapsed_time = lambda end: (end.at - event.at) * 1e3
        return event


def test_the_slowdown_is_that_of_work_among_gathers() -> None:
    clock = Clock()
    beside = NEIGHBOURS.Neighbour(clock, clock.work)
    assert beside.slowdown(clock.launch, 7) == pytest.approx(SLOWER)
    assert clock.in_flight == 0
    assert 1 < clock.most_in_flight <= NEIGHBOURS.MOST_IN_FLIGHT + 1
