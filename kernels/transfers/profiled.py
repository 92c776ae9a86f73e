"""Copies timed alternately by the driver's tracing, which profilers show, and by events."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.api.measure import copy_seconds
from analysis.api.memory import cuda, cudart, synchronize

PAIRS = 11
"""Number of copies timed by each clock, alternately."""


class Profiled:
    """One copy of `size` bytes between two addresses, of any kind of memory."""

    def __init__(self, host: int, device: int, size: int, is_to_device: bool) -> None:
        kinds = cudart.cudaMemcpyKind
        self._copy = (
            (device, host, size, kinds.cudaMemcpyHostToDevice)
            if is_to_device
            else (host, device, size, kinds.cudaMemcpyDeviceToHost)
        )
        self._start, self._stop = (cuda(cudart.cudaEventCreate()) for _ in "ab")

    def launch(self, stream: int) -> None:
        cuda(cudart.cudaMemcpyAsync(*self._copy, stream))

    def samples(self, stream: int) -> Mapping[str, list[float]]:
        """gpu_time: traced seconds of a copy, the sum of its parts; traced_share: its ratio to the
        time between two events around the previous copy."""
        pairs = [(self._between_events(stream), self._traced(stream)) for _ in range(PAIRS)]
        return {
            "gpu_time": [traced for _, traced in pairs],
            "traced_share": [traced / between for between, traced in pairs],
        }

    def _between_events(self, stream: int) -> float:
        # Without tracing, whose buffers keep the host busy between the events.
        self.launch(stream)
        synchronize(stream)
        cuda(cudart.cudaEventRecord(self._start, stream))
        self.launch(stream)
        cuda(cudart.cudaEventRecord(self._stop, stream))
        synchronize(stream)
        return float(cuda(cudart.cudaEventElapsedTime(self._start, self._stop))) * 1e-3

    def _traced(self, stream: int) -> float:
        def launch() -> None:
            self.launch(stream)
            synchronize(stream)

        parts = copy_seconds(launch)
        if not parts:
            raise RuntimeError("the driver's tracing recorded no copy")
        return sum(parts)


def bind(
    host: int,
    device: int,
    landing: int = 0,
    *,
    size: int,
    pitch: int,
    count: int = 1,
    to_device: bool = True,
    streams: int = 0,
    blocks: int = 0,
) -> Profiled:
    """Like bindings.cpp. ValueError for more than one piece."""
    del landing, pitch, streams, blocks
    if count != 1:
        raise ValueError(f"count: expected 1, got {count}")
    return Profiled(host, device, size, to_device)
