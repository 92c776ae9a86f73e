"""Calls, and a check of their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.api.measure import Operation, PythonOperation
from analysis.api.study import Case, Variant


class Workload:
    def __init__(self, constants: dict[str, int], rng: np.random.Generator) -> None:
        self.calls = 0

    def prepare(self, case: Case) -> None:
        self.calls = case.number("calls")

    def bind(self, variant: Variant, module: Any) -> Operation:
        return Calls(module, self.calls)


class Calls(PythonOperation):
    def __init__(self, module: Any, calls: int) -> None:
        self.module, self.calls, self.made = module, calls, -1

    def poison(self) -> None:
        self.made = -1

    def launch(self, stream: int) -> None:
        self.made = self.module.call(self.calls)

    def check(self) -> str | None:
        return None if self.made == self.calls else f"{self.made} calls of {self.calls}"
