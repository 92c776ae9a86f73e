"""Counting threads, and the check for lost increments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis.api.measure import PythonOperation, Skip, cores
from analysis.api.study import Case, Variant

MIN_RUN_S = 2e-3
"""Minimum duration of a run, so that the start of its threads is negligible."""


class Workload:
    """The cores of one case."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        del constants, rng

    def prepare(self, case: Case) -> None:
        """Skip if there are fewer cores than threads."""
        threads, available = case.number("threads"), cores()
        if threads > len(available):
            raise Skip(f"{threads} threads need {threads} cores, here are {len(available)}")
        self._cores, self._work = available[:threads], case.number("work")

    def bind(self, variant: Variant, module: Any) -> Counting:
        return Counting(module, self._cores, self._work)


class Counting(PythonOperation):
    """A run in which every thread counts for at least MIN_RUN_S."""

    def __init__(self, module: Any, cores: Sequence[int], work: int) -> None:
        self._module = module
        self._cores = list(cores)
        self._work = work
        self._batches = 1
        self._made = self._total = 0
        while self._run() < MIN_RUN_S * len(self._cores):
            self._batches *= 2

    def launch(self, stream: int) -> None:
        del stream
        self._run()

    def poison(self) -> None:
        self._made, self._total = -1, 0

    def check(self) -> str | None:
        if self._total == self._made:
            return None
        return f"counted {self._total} of {self._made} increments"

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """op_time: seconds of all threads over increments of all threads."""
        return {"op_time": [self._run() / self._made for _ in range(count)]}

    def _run(self) -> float:
        """Seconds of all threads, added up."""
        seconds, self._made, self._total = self._module.count(
            self._cores, self._batches, self._work
        )
        return float(seconds)
