"""One copy, timed by the driver's own tracing and by events at once."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.measure.memory import cuda, cudart, synchronize
from analysis.measure.tracing import copy_seconds

PAIRS = 5
"""Copies that are timed by both clocks."""


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
        """gpu_time: seconds the tracing gives a copy, all its parts together; traced_share: over
        those between two events around the same copy."""
        pairs = [self._traced(stream) for _ in range(PAIRS)]
        return {
            "gpu_time": [traced for traced, _ in pairs],
            "traced_share": [traced / between for traced, between in pairs],
        }

    def _traced(self, stream: int) -> tuple[float, float]:
        """Seconds of one copy by the tracing and between two events."""

        def launch() -> None:
            cuda(cudart.cudaEventRecord(self._start, stream))
            self.launch(stream)
            cuda(cudart.cudaEventRecord(self._stop, stream))
            synchronize(stream)

        parts = copy_seconds(launch)
        if not parts:
            raise RuntimeError("the driver's tracing recorded no copy")
        # The events are those of the last launch, as is what the tracing kept.
        milliseconds = float(cuda(cudart.cudaEventElapsedTime(self._start, self._stop)))
        return sum(parts), milliseconds * 1e-3


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
    """As bindings.cpp. ValueError for more than one piece."""
    del landing, pitch, streams, blocks
    if count != 1:
        raise ValueError(f"count: expected 1, got {count}")
    return Profiled(host, device, size, to_device)
