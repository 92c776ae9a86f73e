"""Operations that move pieces in one direction, the other, or both at once."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis.api.measure import Operation
from analysis.api.memory import DeviceArray, cuda, cudart
from kernels.common.host_memory import HostMemory

from .layout import POISON, Bytes, Layout, wrong_bytes
from .work import worked_on


class Moving(Operation):
    """An operation around a variant's method, which may take additional samples."""

    def __init__(self, method: Any) -> None:
        self.method = method
        self.launch = method.launch

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        del count
        taken = getattr(self.method, "samples", None)
        samples: Mapping[str, Sequence[float]] = taken(stream) if taken else {}
        return samples


class ToDevice(Moving):
    """Pieces from host to device."""

    def __init__(
        self, method: Any, device: DeviceArray, layout: Layout, payload: Bytes, landed: Bytes
    ) -> None:
        super().__init__(method)
        self.device, self.layout, self.payload, self.landed = device, layout, payload, landed

    def poison(self) -> None:
        self.device.fill(POISON)

    def check(self) -> str | None:
        return self._wrong_payload(self.payload)

    def _wrong_payload(self, expected: Bytes) -> str | None:
        image = self.device.get(self.landed[: self.device.nbytes])
        return self.layout.wrong_on_device(image, expected)


class ToTensor(Moving):
    """A tensor that PyTorch places on the device. It may get the memory of another variant's
    tensor, so each operation moves different bytes."""

    _made = itertools.count(1)

    def __init__(self, method: Any, host: HostMemory, layout: Layout, payload: Bytes) -> None:
        super().__init__(method)
        self.payload = payload ^ np.uint8(next(self._made) % 255 + 1)
        layout.put(host.bytes, self.payload)

    def poison(self) -> None:
        """Poison the memory of the last tensor, which the next one will get."""
        if self.method.output is not None:
            self.method.output.fill_(POISON).cpu()  # the copy waits for the filling
            self.method.output = None

    def check(self) -> str | None:
        return wrong_bytes(self.method.output.cpu().numpy(), self.payload)


class ToHost(Moving):
    """Pieces from device to host."""

    def __init__(
        self,
        method: Any,
        host: HostMemory,
        layout: Layout,
        payload: Bytes,
        device: DeviceArray,
        landed: Bytes,
    ) -> None:
        super().__init__(method)
        self.host, self.layout, self.payload = host, layout, payload
        self.device, self.landed = device, landed

    def poison(self) -> None:
        self.host.bytes[: self.layout.host_bytes] = POISON

    def check(self) -> str | None:
        image = self.host.bytes[: self.layout.host_bytes]
        if self.host.kind == "write_combined":
            # The CPU reads such memory very slowly, so the copy engine reads it.
            through = DeviceArray(image.shape, np.uint8, "image")
            through.put(image)
            image = through.get(self.landed[: image.nbytes])
        return self.layout.wrong_on_host(image, self.payload)


class InPlace(ToDevice):
    """A step of work on data that is on the device before and after the step."""

    def poison(self) -> None:
        """Restore the data, so that the next launch is the first step on it."""
        self.device.put(self.layout.image(self.payload, POISON, self.landed))

    def check(self) -> str | None:
        return self._wrong_payload(worked_on(self.payload, 1))


class Both(Operation):
    """Both directions at once, each on a separate stream."""

    def __init__(self, there: Operation, back: Operation) -> None:
        self._ways = there, back
        self._second = int(cuda(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking)))
        untimed = cudart.cudaEventDisableTiming
        self._begun, self._done = (cuda(cudart.cudaEventCreateWithFlags(untimed)) for _ in "ab")
        self.launch = self._launch

    def _launch(self, stream: int) -> None:
        there, back = self._ways
        cuda(cudart.cudaEventRecord(self._begun, stream))
        cuda(cudart.cudaStreamWaitEvent(self._second, self._begun, 0))
        there.launch(stream)
        back.launch(self._second)
        cuda(cudart.cudaEventRecord(self._done, self._second))
        cuda(cudart.cudaStreamWaitEvent(stream, self._done, 0))

    def poison(self) -> None:
        for way in self._ways:
            way.poison()

    def check(self) -> str | None:
        return next((wrong for way in self._ways if (wrong := way.check())), None)
