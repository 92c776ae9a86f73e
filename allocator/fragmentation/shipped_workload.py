"""Replays of allocators that packages ship, also after a wait for the GPU."""

from __future__ import annotations

from typing import Any

from allocator.lib.replay import Reported
from analysis.api.measure import Operation
from analysis.api.study import Case, Variant

from . import workload
from .patterns import HostAhead


class Workload(workload.Workload):
    """The tapes of a case. With the key `after`, the host waits for the GPU before each replay: a
    pool may return memory to the driver there."""

    def prepare(self, case: Case) -> None:
        super().prepare(case)
        if "after" in case.values:
            self._pattern = HostAhead(self._pattern.tapes, self._pattern.streams)

    def bind(self, variant: Variant, module: Any) -> Operation:
        del variant
        return workload.Replay(module, self._pattern, Reported.CALLS | Reported.MEMORY)
