"""One request's trace for policies of eviction, which are simulated on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from analysis.api.measure import Operation, PythonOperation
from analysis.api.study import Case, Variant

from .policies import fetched_rows
from .traces import Shape, draw_trace

CONTEXT_ROWS: Final = 131072
STEPS: Final = 200


class Workload:
    """Draws the trace of each case; a fetched row has `token_bytes`."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._row_bytes = constants["token_bytes"]
        self._rng = rng

    def prepare(self, case: Case) -> Inputs:
        """FieldError if the case's trace cannot be drawn."""
        topk, slots = case.number("topk"), case.number("slots")
        shape = Shape(1, topk, slots, CONTEXT_ROWS, STEPS)
        trace = draw_trace(str(case["trace"]), shape, self._rng)
        return Inputs(trace.ids[:, 0], trace.warmup_steps, slots, self._row_bytes)


class Inputs:
    """The row ids of one case, int32 [steps, topk], of which the first `warmup_steps` do not
    count."""

    def __init__(self, ids: np.ndarray, warmup_steps: int, slots: int, row_bytes: int) -> None:
        self.ids = ids
        self.warmup_steps = warmup_steps
        self.slots = slots
        self.row_bytes = row_bytes

    @cached_property
    def least(self) -> int:
        """Rows that the optimum fetches, with the warm-up."""
        return int(fetched_rows("belady", self.ids, self.slots, CONTEXT_ROWS).sum())

    def bind(self, variant: Variant, module: Any) -> Operation:
        return Simulation(module, variant.options["policy"], self)


class Simulation(PythonOperation):
    """One policy over one trace."""

    def __init__(self, module: Any, policy: str, inputs: Inputs) -> None:
        self._module = module
        self._policy = policy
        self._inputs = inputs
        self._fetched = np.zeros(0)

    def launch(self, stream: int) -> None:
        self._fetched = self._module.fetched_rows(
            self._policy, self._inputs.ids, self._inputs.slots, CONTEXT_ROWS
        )

    def poison(self) -> None:
        self._fetched = np.zeros(0)

    def check(self) -> str | None:
        """None if every step was simulated and the policy fetches no fewer rows than possible."""
        if len(self._fetched) != len(self._inputs.ids):
            return f"steps: expected {len(self._inputs.ids)}, got {len(self._fetched)}"
        if (total := int(self._fetched.sum())) < self._inputs.least:
            return f"rows fetched: expected at least {self._inputs.least}, got {total}"
        return None

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """fetched: bytes per step after the warm-up."""
        rows = self._fetched[self._inputs.warmup_steps :].mean()
        return {"fetched": [float(rows) * self._inputs.row_bytes]}
