"""The measured operation, which a workload builds from a variant and a case."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from analysis.base.errors import HotpathError
from analysis.study import Case, Variant


class Skip(HotpathError):
    """Raised by a workload if this machine cannot run a variant or case; the message says why."""


class Launcher(Protocol):
    """Does an operation's work and takes its host times. Streams are cudaStream_t; 0 stands for
    work of the CPU alone, for which nothing is flushed or awaited."""

    def launch(self, stream: int) -> None:
        """Do the work once, or enqueue it."""

    def time_launch(self, stream: int, l2: int, l2_bytes: int) -> tuple[float, float]:
        """Flush the L2 by a memset of `l2_bytes` at address `l2` (0: no flush), wait, then launch
        and wait: seconds until the call returned, and until its work was done."""


class PythonLauncher:
    """A Launcher of a Python function, timed by Python's clock: the call of the function is part of
    its time. A variant with such host times has `clock: python` in study.yaml."""

    def __init__(self, launch: Callable[[int], object]) -> None:
        self._launch = launch

    def launch(self, stream: int) -> None:
        self._launch(stream)

    def time_launch(self, stream: int, l2: int, l2_bytes: int) -> tuple[float, float]:
        launch, wait = self._launch, _no_wait
        if stream:
            from analysis.measure.memory import flush_l2, synchronize  # imports CUDA

            wait = synchronize
            flush_l2(stream, l2, l2_bytes)
        before = time.perf_counter_ns()
        launch(stream)
        submitted = time.perf_counter_ns()
        wait(stream)
        done = time.perf_counter_ns()
        return (submitted - before) * 1e-9, (done - before) * 1e-9


def _no_wait(stream: int) -> None: ...


class Operation(ABC):
    """One variant bound to one case by the study's workload.py; docs/workload.md has each part.

    `held_s` limits the random time for which a blocked stream stays blocked after everything is
    enqueued. `waits` is the variant's host_work if it is None.
    """

    launcher: Launcher
    reset: Callable[[int], None] | None = None
    waits: bool | None = None
    settle: Callable[[], None] | None = None
    held_s: tuple[float, float] = (0.0, 50e-6)

    def launch(self, stream: int) -> None:
        """Do the work once by the launcher."""
        self.launcher.launch(stream)

    @abstractmethod
    def poison(self) -> None:
        """Overwrite the output, so that bytes that never arrive are detected."""

    @abstractmethod
    def check(self) -> str | None:
        """None if every output byte equals the reference's, else what differs."""

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """Metrics that only the study can take, by name: `count` samples of each where repeating
        makes sense. Called once per visit, after the check and the warm-up."""
        del stream, count
        return {}


class PythonOperation(Operation):
    """An operation whose `launch` is Python, and therefore its clock."""

    @property
    def launcher(self) -> Launcher:  # type: ignore[override]
        # Rounds run without the collector of cycles: a launcher that is kept would keep its memory.
        return PythonLauncher(self.launch)

    @abstractmethod
    def launch(self, stream: int) -> None:
        """Do the work once, or enqueue it."""


TimeDevice = Callable[[Operation, int], None]
"""Takes the given number of device times of an operation."""


@dataclass(eq=False)
class Cell:
    """One variant and case in this round, with the outcome of all its visits. `clocks_mhz` are the
    SM clocks that were read between timings, `reasons` the throttle reasons."""

    variant: Variant
    case: Case
    values: list[tuple[str, float]] = field(default_factory=list)
    started_at: str = ""
    failure: str = ""
    skipped: str = ""
    clocks_mhz: list[float] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)
    sm_mhz: float | None = None

    def __str__(self) -> str:
        return f"{self.variant.name} {self.case.id}"
