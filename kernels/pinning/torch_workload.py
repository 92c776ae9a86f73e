"""Memory that PyTorch pins, and how much of it PyTorch gets from CUDA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.api.measure import Operation
from analysis.api.study import Case, Variant

from . import workload


class Workload(workload.Workload):
    """The sizes of the study."""

    def prepare(self, case: Case) -> Inputs:
        return Inputs(super().prepare(case))


class Inputs(workload.Inputs):
    """The inputs of one case."""

    def __init__(self, inputs: workload.Inputs) -> None:
        self.__dict__.update(vars(inputs))

    def bind(self, variant: Variant, module: Any) -> Operation:
        del variant
        return Pinning(module, self._request, self._beside, self._rng)


class Pinning(workload.Pinning):
    """Pinning that also reports `held_bytes`, what CUDA has given for the request."""

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        held = float(self._pinned.held_bytes)
        return {**super().own_samples(stream, count), "held_bytes": [held]}
