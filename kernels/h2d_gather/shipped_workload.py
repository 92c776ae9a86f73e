"""The pools and the check of copies that serving engines ship."""

from __future__ import annotations

from typing import Any

from analysis.api.study import Variant
from kernels.common.options import with_options

from . import workload


class Workload(workload.Workload):
    """The inputs of the study, for operators that take a variant's options."""

    def bind(self, variant: Variant, module: Any) -> workload.Bound:
        return super().bind(variant, with_options(variant, module))
