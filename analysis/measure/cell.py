"""What is measured: an operation a workload makes of a variant and a case, and its outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from analysis.errors import HotpathError
from analysis.study import Case, Variant


class Skip(HotpathError):
    """Raised by a workload where this machine cannot run a variant or case; says why not."""


class Operation(ABC):
    """One variant bound to one case by the study's workload.py.

    `launch(stream)` does the work once. `reset`, where it is not None, enqueues what must come
    before every launch and is not timed. `waits` says whether a launch waits for the GPU, or
    submits more than some 32 operations: its stream cannot be held until all of it is enqueued.
    None leaves that to the variant's host_work. `settle`, where it is not None, takes the host
    memory that is read out of the CPU's caches: which lines a check leaves there, and whether their
    cores sleep, is chance.
    """

    launch: Callable[[int], None]
    reset: Callable[[int], None] | None = None
    waits: bool | None = None
    settle: Callable[[], None] | None = None

    @abstractmethod
    def poison(self) -> None:
        """Overwrite the output, so that bytes that never arrive are seen."""

    @abstractmethod
    def check(self) -> str | None:
        """None where every byte of the output is the reference's, else what differs."""

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """Metrics only the study can take, by name: parts of a call, a runner's own times, counts.

        Called once a visit, right after the check; `count` samples each where repeating makes
        sense.
        """
        del stream, count
        return {}


TimeDevice = Callable[[Operation, int], None]
"""Takes so many device times of an operation."""


class Binder(Protocol):
    """The inputs of one case, to which variants are bound."""

    def bind(self, variant: Variant, module: Any) -> Operation:
        """The variant on these inputs; `module` is its built module. Skip where it cannot run."""
        ...


class Workload(Protocol):
    """What a study works on in one process: `Workload(constants, rng)` in the study's workload.py.

    Only the rig calls it: `prepare`, then `bind` of what that returned.
    """

    def prepare(self, case: Case) -> Binder | None:
        """The inputs of `case`; None stands for the workload itself, which holds one case's inputs
        at a time and has `bind`. Skip where this machine cannot run it."""
        ...


@dataclass(eq=False)
class Cell:
    """One variant and case in this round, and what became of it in all visits."""

    variant: Variant
    case: Case
    values: list[tuple[str, float]] = field(default_factory=list)
    started_at: str = ""
    failure: str = ""
    skipped: str = ""
    throttle: str = ""
    sm_mhz: float | None = None

    def __str__(self) -> str:
        return f"{self.variant.name} {self.case.id}"
