"""Copies timed alternately by two events and by the driver's tracing, which profilers show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from analysis.api.measure import copy_seconds
from analysis.api.memory import synchronize
from kernels.common.moves.moving import Moving

from .workload import Workload as Transfers

PAIRS: Final = 11
"""Number of copies timed by each clock, alternately."""


class Traced(Moving):
    """One copy, whose method times it by events."""

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """gpu_time: traced seconds of a copy, the sum of its parts; traced_share: its ratio to the
        time between two events around the previous copy."""
        del count
        pairs = [(self._between_events(stream), self._traced(stream)) for _ in range(PAIRS)]
        return {
            "gpu_time": [traced for _, traced in pairs],
            "traced_share": [traced / between for between, traced in pairs],
        }

    def _between_events(self, stream: int) -> float:
        # Without tracing, whose buffers keep the host busy between the events.
        (seconds,) = self.method.samples(stream)["gpu_time"]
        return float(seconds)

    def _traced(self, stream: int) -> float:
        def launch() -> None:
            self.launch(stream)
            synchronize(stream)

        parts = copy_seconds(launch)
        if not parts:
            raise RuntimeError("the driver's tracing recorded no copy")
        return sum(parts)


class Workload(Transfers):
    """Copies of one piece."""

    operation = Traced
