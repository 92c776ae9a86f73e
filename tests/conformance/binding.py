"""Variants bound to small cases, launched and checked as the engine does it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from analysis.base.expression import evaluate
from analysis.measure.cell import Operation
from analysis.measure.memory import synchronize
from analysis.study import Case, CaseValue, Study, Variant
from analysis.toolchain.modules import load_python

Values = Mapping[str, CaseValue]


def case_of(variant: Variant, values: Values, constants: Mapping[str, int]) -> Case:
    """The variant's first case with other values, and the payload that these have."""
    values = {**variant.cases[0].values, **values}
    payload = evaluate(variant.payload, {**variant.constants, **constants, **values})
    return Case(values, payload, "default")


def bound(
    study: Study,
    variant: Variant,
    module: Any,
    values: Values,
    workload: Any = None,
    **constants: int,
) -> Any:
    """The variant bound to a case by a workload, or by a new one. The operation keeps both, as
    memory is read by address."""
    if workload is None:
        made = load_python(study, variant.workload).Workload
        workload = made({**variant.constants, **constants}, np.random.default_rng(0))
    inputs = workload.prepare(case_of(variant, values, constants)) or workload
    operation = inputs.bind(variant, module)
    operation.workload, operation.inputs = workload, inputs
    return operation


def outcome(operation: Operation, stream: int = 0) -> str | None:
    """The result of the check after a launch."""
    operation.poison()
    operation.launch(stream)
    synchronize(stream)
    return operation.check()
