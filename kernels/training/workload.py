"""A training loop, inference, graphs and limits in a process with each variant's allocator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from analysis.errors import FieldError
from analysis.measure.cell import Operation, Skip
from analysis.study import Case, Variant

from .child import Message
from .children import Child, ChildError, Children, Unable
from .torch_caching import SETTINGS as DEFAULT
from .works import WORKS

REFERENCE: Final = "torch_caching"
"""Whose values those of all others have to be."""

COUNTED: Final = ("training_small", "training_large", "decoding")
"""Works of which it is counted what the allocator takes."""

COUNTED_METRICS: Final = ("allocation_time", "allocation_share", "allocations")


class Workload:
    """What is done in a case, and the processes that do it: one for each variant, kept for the
    whole round."""

    _children: ClassVar[Children]

    @classmethod
    def before_cuda(cls) -> None:
        """Fork what the processes are forked from."""
        cls._children = Children()

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        del constants, rng  # draws are PyTorch's, with fixed seeds, so that every run is the same
        self._work = ""
        self._expected: dict[str, list[float]] = {}

    def prepare(self, case: Case) -> None:
        self._work = str(case["work"])
        if self._work not in WORKS:
            raise FieldError(f"case {case.id}: work", f"one of {sorted(WORKS)}", self._work)

    def bind(self, variant: Variant, module: Any) -> Operation:
        """Skip where the GPU has too little memory."""
        settings = getattr(module, "SETTINGS", None)
        path = str(Path(module.__file__).resolve()) if settings is None else None
        return Asked(
            partial(self._children.get, variant.name, settings=settings, module=path),
            self._expect,
            self._work,
            is_plugged=settings is None,
        )

    def _expect(self) -> list[float]:
        """What the values have to be, as the reference's process has them."""
        if self._work not in self._expected:
            child = self._children.get(REFERENCE, settings=DEFAULT, module=None)
            told = child.ask(work=self._work, counted=False)
            self._expected[self._work] = told["values"]
        return self._expected[self._work]


class Asked(Operation):
    """A work done by a variant's process each time it is launched.

    An error of the process is a fault of the cell, not of the round.
    """

    waits = True

    def __init__(
        self,
        get: Callable[[], Child],
        expect: Callable[[], Sequence[float]],
        work: str,
        is_plugged: bool,
    ) -> None:
        self._get = get
        self._expect = expect
        self._work = work
        self._is_counted = is_plugged and work in COUNTED
        self._expected: Sequence[float] = []
        self._told: Message = {}
        self._fault: str | None = "never done"

    def launch(self, stream: int) -> None:
        del stream
        self._fault = None
        try:
            self._expected = self._expect()
            self._ask()
        except Unable as reason:
            raise Skip(str(reason)) from None
        except ChildError as error:
            self._fault = str(error)

    def _ask(self, *, counted: bool = False) -> Message:
        self._told = self._get().ask(work=self._work, counted=counted)
        return self._told

    def poison(self) -> None:
        self._fault = "never done"

    def check(self) -> str | None:
        return self._fault or self._difference()

    def _difference(self) -> str | None:
        values = self._told["values"]
        if len(values) != len(self._expected):
            return f"values: expected {len(self._expected)}, got {len(values)}"
        pairs = enumerate(zip(values, self._expected, strict=True), start=1)
        return next(
            (
                f"value {n}: expected {right!r}, got {got!r}"
                for n, (got, right) in pairs
                if got != right
            ),
            None,
        )

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """All metrics, in the units of study.yaml, per step but for bytes and shares."""
        del stream, count
        runs = [self._told["metrics"], self._checked()]
        per_run = ("host_time", "submit_time", "gpu_time", "driver_calls")
        samples = {name: [run[name] for run in runs] for name in per_run}
        samples |= {name: [runs[-1][name]] for name in ("reserved", "active")}
        if self._is_counted:
            counted = self._checked(counted=True)
            samples |= {name: [counted[name]] for name in COUNTED_METRICS}
        return samples

    def _checked(self, *, counted: bool = False) -> Mapping[str, float]:
        """The metrics of another run. RuntimeError where its values are wrong."""
        metrics: Mapping[str, float] = self._ask(counted=counted)["metrics"]
        if wrong := self._difference():
            raise RuntimeError(f"{self._work}: {wrong}")
        return metrics
