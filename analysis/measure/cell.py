"""What is measured: an operation a workload makes of a variant and a case, and its outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from analysis.study import Case, Variant


class Operation(Protocol):
    """One variant bound to one case by the study's workload.py.

    `reset`, where it is not None, enqueues what must come before every launch and is not timed.
    """

    reset: Callable[[int], None] | None

    @property
    def launch(self) -> Callable[[int], None]: ...
    def poison(self) -> None: ...
    def check(self) -> str | None: ...
    def facts(self) -> dict[str, float]: ...


class Workload(Protocol):
    """Inputs of one study in one process: `Workload(constants, rng)` in the study's workload.py."""

    def prepare(self, case: Case) -> None: ...
    def bind(self, variant: Variant, module: Any) -> Operation: ...


@dataclass
class Cell:
    """One variant and case in this round, and what became of it."""

    variant: Variant
    case: Case
    values: list[tuple[str, float]] = field(default_factory=list)
    started_at: str = ""
    failure: str = ""
    throttle: str = ""
    sm_mhz: float | None = None

    def __str__(self) -> str:
        return f"{self.variant.name} {self.case.id}"
