"""The measured operation, which a workload builds from a variant and a case."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from analysis.base.errors import HotpathError
from analysis.study import Case, Variant


class Skip(HotpathError):
    """Raised by a workload if this machine cannot run a variant or case; the message says why."""


class Operation(ABC):
    """One variant bound to one case by the study's workload.py.

    `launch(stream)` does the work once. `reset`, if not None, enqueues untimed work that must
    precede every launch. `waits` says whether a launch waits for the GPU or submits more than about
    32 operations: its stream cannot be blocked until everything is enqueued. None means the
    variant's host_work. `settle`, if not None, flushes the host memory that is read from the CPU's
    caches. Otherwise it would be chance which lines a check leaves there and whether their cores
    sleep.
    """

    launch: Callable[[int], None]
    reset: Callable[[int], None] | None = None
    waits: bool | None = None
    settle: Callable[[], None] | None = None

    @abstractmethod
    def poison(self) -> None:
        """Overwrite the output, so that bytes that never arrive are detected."""

    @abstractmethod
    def check(self) -> str | None:
        """None if every output byte equals the reference's, else what differs."""

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """Metrics that only the study can take, by name: parts of a call, times by its runner,
        counts.

        Called once per visit, right after the check. Returns `count` samples of each metric where
        repeating makes sense.
        """
        del stream, count
        return {}


TimeDevice = Callable[[Operation, int], None]
"""Takes the given number of device times of an operation."""


class Binder(Protocol):
    """The inputs of one case, to which variants are bound."""

    def bind(self, variant: Variant, module: Any) -> Operation:
        """Bind `variant`, built as `module`, to these inputs. Skip if it cannot run here."""
        ...


class Workload(Protocol):
    """A study's inputs in one process: `Workload(constants, rng)` in the study's workload.py.

    Only the rig calls it: `prepare`, then `bind` on the result. A class method `before_cuda`, where
    there is one, comes before all else, once in a process that has not used CUDA yet. `before_bind`
    of the result, where there is one, gets the variants that are bound next, with their modules.
    """

    def prepare(self, case: Case) -> Binder | None:
        """The inputs of `case`. None stands for the workload itself, which then has `bind` and
        holds the inputs of one case at a time. Skip if this machine cannot run the case."""
        ...


@dataclass(frozen=True)
class Visit:
    """When a visit to a cell began; it lasts until the next visit of the round."""

    started_at: str
    run: str
    round: int
    variant: str
    case: str


@dataclass(eq=False)
class Cell:
    """One variant and case in this round, with the outcome of all its visits.

    `clocks_mhz` are the SM clocks that were read between timings, `reasons` the throttle reasons.
    """

    variant: Variant
    case: Case
    values: list[tuple[str, float]] = field(default_factory=list)
    started_at: str = ""
    failure: str = ""
    skipped: str = ""
    clocks_mhz: list[float] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)
    sm_mhz: float | None = None

    @property
    def throttle(self) -> str:
        return "|".join(sorted(self.reasons))

    def __str__(self) -> str:
        return f"{self.variant.name} {self.case.id}"
