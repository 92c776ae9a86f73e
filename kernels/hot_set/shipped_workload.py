"""The inputs and the check of steps that serving engines ship."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np

from analysis.api.study import Case, Variant
from kernels.common.options import with_options
from kernels.common.outputs import POISON

from . import workload
from .comparison import Contents, Source, difference
from .reference import FREE, Step
from .workload import HotSetSteps


class Workload(workload.Workload):
    """The inputs of the study, for steps with another check."""

    def prepare(self, case: Case) -> Inputs:  # type: ignore[override]
        if "places" not in case.values:
            return Inputs(super().prepare(case), {})
        return Inputs(super().prepare(case), {"table_size": case.number("places")})


class Inputs:
    """The inputs of one case, and further arguments of `bind`."""

    def __init__(self, inputs: workload.Inputs, more: Mapping[str, int]) -> None:
        self._inputs = inputs
        self._more = more

    def bind(self, variant: Variant, module: Any) -> ShippedSteps:
        steps = self._inputs.bind(variant, with_options(variant, module, **self._more))
        assert isinstance(steps, HotSetSteps)
        return ShippedSteps(steps, self._inputs, variant)


class ShippedSteps(HotSetSteps):
    """A step that keeps the last use of its rows in a form of its own.

    Among rows that were last used in the same step, it may evict any one. Everything else is
    checked as for the study's own steps: the rows held, the slots handed out, and all bytes.
    """

    def __init__(self, steps: HotSetSteps, inputs: workload.Inputs, variant: Variant) -> None:
        super().__init__(steps._bound, inputs, variant)
        self._played = steps._played  # those of the warm-up
        shape = inputs.shape
        self._last_used = np.full((shape.requests, shape.context_rows), FREE, np.int32)
        self._followed = 0

    def check(self) -> str | None:
        """None if every request holds the rows that were used last, and all of its slots and bytes
        are right, else the first difference."""
        inputs = self._inputs
        self._bound.publish()
        for number in range(self._followed, len(self._played)):
            np.put_along_axis(self._last_used, inputs.trace.ids[self._played[number]], number, 1)
        self._followed = len(self._played)
        ids = inputs.trace.ids[self._played[-1]]
        out, rows = (each.get()[0] for each in (inputs.out, inputs.rows))
        landing = workload._SHARED.landing(rows.size, inputs.pool.shape[1])
        hot = inputs.hot.get(landing).reshape(inputs.hot.shape)[0]
        nothing = np.empty(0, np.int32)

        def compare(request: int) -> str | None:
            held: Any = SimpleNamespace(rows=latest_rows(self._last_used[request], rows[request]))
            found = difference(
                held,
                Step(nothing, nothing, nothing, nothing),
                ids[request],
                Contents(out[request], rows[request], buffer=hot[request]),
                Source(inputs.places[0, request], inputs.pool, POISON),
            )
            return found and f"request {request}, {found}"

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            found = threads.map(compare, range(len(rows)))
        return next(filter(None, found), None)


def latest_rows(last_used: np.ndarray, held: np.ndarray) -> np.ndarray:
    """The rows that must be in as many slots as `held` has: those that were used last. Of rows with
    an equal last use, those in `held` come first, because any of them may be evicted.

    last_used: number of the last step that used each row of the context, or FREE
    held: row in each slot, or FREE
    """
    order = 2 * last_used.astype(np.int64)
    order[held[held != FREE]] += 1
    used = np.flatnonzero(last_used != FREE)
    count = min(len(used), len(held))
    latest = used[np.argpartition(-order[used], count - 1)[:count]]
    return np.concatenate([latest, np.full(len(held) - count, FREE)]).astype(np.int32)
