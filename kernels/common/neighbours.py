"""A kernel beside the gather, on another stream, and its slowdown."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from analysis.api.measure import Skip
from analysis.api.study import require_known

ALONE_S: Final = 0.02
"""Seconds of a neighbour's work alone, several times as long as a gather."""

MATRIX_ROWS: Final = 8192
COPIED_BYTES: Final = 2**30

MOST_IN_FLIGHT: Final = 2
"""Gathers enqueued ahead of the GPU."""


PRIORITISED: Final = "prioritised_"
"""Prefix of a neighbour's name if its stream has the highest priority."""


class Neighbour:
    """GPU work that is repeated beside gathers. `cuda` is torch.cuda; CUDA prefers streams of a
    lower `priority`."""

    def __init__(self, cuda: Any, work: Callable[[], object], priority: int = 0) -> None:
        self._cuda = cuda
        self._work = work
        self._stream = cuda.Stream(priority=priority)
        self._times = 1
        self._alone_s()  # the first run is slow
        self._times = max(1, round(ALONE_S / self._alone_s()))

    def slowdown(self, launch: Callable[[int], None], stream: int) -> float:
        """Ratio of the neighbour's time while `launch(stream)` is repeated to its time alone."""
        alone = self._alone_s()
        gathers = self._cuda.ExternalStream(stream)
        launch(stream)
        begin, end = self._enqueue()
        in_flight: deque[Any] = deque()
        while not end.query():
            launch(stream)
            done = self._cuda.Event()
            done.record(gathers)
            in_flight.append(done)
            if len(in_flight) == MOST_IN_FLIGHT:
                in_flight.popleft().synchronize()
        gathers.synchronize()
        return _seconds(begin, end) / alone

    def _alone_s(self) -> float:
        """Seconds of the work alone."""
        return _seconds(*self._enqueue())

    def _enqueue(self) -> tuple[Any, Any]:
        """Enqueue the work; return the events before and after it."""
        begin, end = (self._cuda.Event(enable_timing=True) for _ in range(2))
        begin.record(self._stream)
        with self._cuda.stream(self._stream):
            for _ in range(self._times):
                self._work()
        end.record(self._stream)
        return begin, end


@cache
def neighbour(kind: str) -> Neighbour:
    """The neighbour `gemm`, a matrix product, or `memory`, a copy in device memory. After the
    prefix PRIORITISED, on a stream of the highest priority.

    FieldError for another kind, Skip if PyTorch is not installed.
    """
    work = kind.removeprefix(PRIORITISED)
    require_known("beside", work, list(_WORK))
    try:
        import torch
    except ImportError as error:
        raise Skip("the kernel beside the gather needs PyTorch, which is not installed") from error
    highest = -5  # CUDA clamps it
    return Neighbour(torch.cuda, _WORK[work](torch), 0 if work == kind else highest)


def _gemm(torch: Any) -> Callable[[], object]:
    options = {"dtype": torch.bfloat16, "device": "cuda"}
    factors = [torch.randn(MATRIX_ROWS, MATRIX_ROWS, **options) for _ in range(2)]
    product = torch.empty(MATRIX_ROWS, MATRIX_ROWS, **options)
    torch.cuda.synchronize()  # the neighbour's stream does not wait for the factors
    return lambda: torch.mm(*factors, out=product)


def _memory(torch: Any) -> Callable[[], object]:
    source = torch.zeros(COPIED_BYTES // 4, dtype=torch.int32, device="cuda")
    target = torch.empty_like(source)
    torch.cuda.synchronize()
    return lambda: torch.add(source, 1, out=target)  # the copy engine may do a plain copy


_WORK: Final[Mapping[str, Callable[[Any], Callable[[], object]]]] = {
    "gemm": _gemm,
    "memory": _memory,
}


def _seconds(begin: Any, end: Any) -> float:
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e-3
