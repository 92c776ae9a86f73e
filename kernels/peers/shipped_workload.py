"""The pools and the check of copies that serving engines ship."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from analysis.api.measure import Operation
from analysis.api.study import Case, Variant

from . import workload


class Workload(workload.Workload):
    """The inputs of the study, for operators that take a variant's options."""

    def prepare(self, case: Case) -> Inputs:
        return Inputs(case, self._pools, self._buffers, self._rng)


class Inputs(workload.Inputs):
    def bind(self, variant: Variant, module: Any) -> Operation:
        bound = partial(module.Bound, **variant.options)
        return super().bind(
            variant, SimpleNamespace(plan=module.plan, Part=module.Part, Bound=bound)
        )
