"""The pools and the check of copies that serving engines ship."""

from __future__ import annotations

from typing import Any

from analysis.api.measure import Operation
from analysis.api.study import Case, Variant
from kernels.common.options import with_options

from . import workload


class Workload(workload.Workload):
    """The inputs of the study, for operators that take a variant's options."""

    def prepare(self, case: Case) -> Inputs:  # type: ignore[override]
        return Inputs(super().prepare(case))


class Inputs:
    """The inputs of one case."""

    def __init__(self, inputs: workload.Inputs) -> None:
        self._inputs = inputs

    def bind(self, variant: Variant, module: Any) -> Operation:
        return self._inputs.bind(variant, with_options(variant, module))
