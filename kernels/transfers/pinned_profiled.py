"""One copy of pinned memory, timed by the driver's own tracing instead of by events."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.measure.memory import cuda, cudart, synchronize
from analysis.measure.tracing import copy_seconds

memory = "pinned"


class Profiled:
    """One copy of `size` bytes between two addresses."""

    def __init__(self, host: int, device: int, size: int, is_to_device: bool) -> None:
        kinds = cudart.cudaMemcpyKind
        self._copy = (
            (device, host, size, kinds.cudaMemcpyHostToDevice)
            if is_to_device
            else (host, device, size, kinds.cudaMemcpyDeviceToHost)
        )

    def launch(self, stream: int) -> None:
        cuda(cudart.cudaMemcpyAsync(*self._copy, stream))

    def samples(self, stream: int) -> Mapping[str, list[float]]:
        """gpu_time: seconds the tracing gives the copy, all its parts together."""

        def launch() -> None:
            self.launch(stream)
            synchronize(stream)

        parts = copy_seconds(launch)
        if not parts:
            raise RuntimeError("the driver's tracing recorded no copy")
        return {"gpu_time": [sum(parts)]}


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
