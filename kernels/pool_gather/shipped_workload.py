"""The pools and the check of copies that serving engines ship."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.api.measure import Operation
from analysis.api.study import Case, Variant
from kernels.common.options import with_options

from . import workload


class Workload(workload.Workload):
    """The inputs of the study, for operators that take a variant's options."""

    def prepare(self, case: Case) -> Inputs:  # type: ignore[override]
        blocks = {"blocks": case.number("blocks")} if "blocks" in case.values else {}
        return Inputs(super().prepare(case), blocks)


class Inputs:
    """The inputs of one case, and further arguments of `bind`."""

    def __init__(self, inputs: workload.Inputs, more: Mapping[str, int]) -> None:
        self._inputs = inputs
        self._more = more

    def bind(self, variant: Variant, module: Any) -> Operation:
        return self._inputs.bind(variant, with_options(variant, module, **self._more))
