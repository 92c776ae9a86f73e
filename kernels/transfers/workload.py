"""Memory of each kind, random pieces in it, and the operation of each case on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from analysis.api.measure import Operation, flush
from analysis.api.memory import DeviceArray
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import move_to_host
from kernels.common.host_memory import HostMemory
from kernels.common.random_bytes import random_bytes

from .kinds import memory_of
from .layout import GUARD, UNASKED, Bytes, Layout, layout_of
from .moving import Both, InPlace, ToDevice, ToHost, ToTensor
from .price import Pressure, Price
from .work import worked_on

MAX_QUEUED_OPERATIONS = 32
"""More operations than this may fill the driver's queue, and then submitting waits for the GPU."""


class Workload:
    """Host memory is kept for later cases and grows as needed; device memory is created per
    case."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._rng = rng
        self._work_rounds = constants["work_rounds"]
        self._random = np.empty(0, np.uint8)
        self._memory: dict[tuple[str, str], HostMemory] = {}
        self._case: Case | None = None
        self._in_use: list[Bytes] = []  # host memory of the operation, and where checks look
        self._payloads: dict[str, Bytes] = {}

    def prepare(self, case: Case) -> None:
        self._case = case
        self._payloads = {}

    def bind(self, variant: Variant, module: Any) -> Operation:
        """FieldError for an unknown direction, Skip if this machine lacks the memory."""
        case = self._case
        assert case is not None, "prepare comes before bind"
        # If a file serves several kinds of memory, the variant's name determines the kind.
        kind = getattr(module, "memory", memory_of(variant.name))
        self._in_use = []
        if "held_bytes" in case.values:
            return Pressure(kind, case.number("held_bytes"))
        if "direction" not in case.values:
            return Price(kind, self._payload("there", case.number("size")))
        operation = self._moving(str(case["direction"]), kind, layout_of(case), module)
        operation.settle = partial(_flush_all, tuple(self._in_use))
        # In a stream blocked until all is enqueued, a copy of pageable memory would wait forever.
        operation.waits = (
            variant.host_work or kind == "pageable" or layout_of(case).count > MAX_QUEUED_OPERATIONS
        )
        return operation

    def _moving(self, direction: str, kind: str, layout: Layout, module: Any) -> Operation:
        match direction:
            case "h2d":
                return self._to_device(kind, layout, module, "there")
            case "d2h":
                return self._to_host(kind, layout, module, "there")
            case "both":
                there = self._to_device(kind, layout, module, "there")
                return Both(there, self._to_host(kind, layout, module, "back"))
            case "round_trip":
                return self._round_trip(kind, layout, module)
            case "in_place":
                return self._in_place(kind, layout, module)
        expected = "h2d, d2h, both, round_trip or in_place"
        raise FieldError("direction", expected, direction)

    def _to_device(self, kind: str, layout: Layout, module: Any, way: str) -> Operation:
        host = self._host(kind, way, layout.host_bytes)
        payload = self._payload(way, layout.packed_bytes)
        layout.put(host.bytes, payload)
        device = DeviceArray((layout.device_bytes,), np.uint8, "device")
        method = self._method(module, layout, host, device)
        if hasattr(method, "output"):
            return ToTensor(method, host, layout, payload)
        operation = ToDevice(method, device, layout, payload, self._landed(layout))
        if host.kind == "managed":
            operation.reset = partial(move_to_host, host.bytes)
        return operation

    def _to_host(self, kind: str, layout: Layout, module: Any, way: str) -> Operation:
        host = self._host(kind, way, layout.host_bytes)
        payload = self._payload(way, layout.packed_bytes)
        device = self._on_device(layout, payload)
        method = self._method(module, layout, host, device, to_device=False)
        return ToHost(method, host, layout, payload, device, self._landed(layout))

    def _round_trip(self, kind: str, layout: Layout, module: Any) -> Operation:
        host = self._host(kind, "there", layout.host_bytes)
        landing = self._host(kind, "back", layout.host_bytes)
        payload = self._payload("there", layout.packed_bytes)
        layout.put(host.bytes, payload)
        device = DeviceArray((layout.device_bytes,), np.uint8, "device")
        method = self._method(module, layout, host, device, landing=landing.pointer + GUARD)
        expected = worked_on(payload, self._work_rounds)
        return ToHost(method, landing, layout, expected, device, self._landed(layout))

    def _in_place(self, kind: str, layout: Layout, module: Any) -> Operation:
        host = self._host(kind, "there", layout.host_bytes)
        payload = self._payload("there", layout.packed_bytes)
        device = self._on_device(layout, payload)
        method = self._method(module, layout, host, device)
        return InPlace(method, device, layout, payload, self._landed(layout))

    def _method(
        self,
        module: Any,
        layout: Layout,
        host: HostMemory,
        device: DeviceArray,
        landing: int = 0,
        to_device: bool = True,
    ) -> Any:
        case = self._case
        assert case is not None
        settings = {key: case.number(key) for key in ("streams", "blocks") if key in case.values}
        return module.bind(
            host.pointer + GUARD,
            device.pointer + GUARD,
            landing,
            size=layout.size,
            pitch=layout.pitch,
            count=layout.count,
            to_device=to_device,
            **settings,
        )

    def _on_device(self, layout: Layout, payload: Bytes) -> DeviceArray:
        device = DeviceArray((layout.device_bytes,), np.uint8, "device")
        device.put(layout.image(payload, UNASKED, self._landed(layout)))
        return device

    def _host(self, kind: str, way: str, size: int) -> HostMemory:
        """At least `size` bytes of `kind`; the same memory as long as it suffices."""
        have = self._memory.get((kind, way))
        if have is None or have.bytes.nbytes < size:
            if have is not None:
                have.close()
            have = self._memory[kind, way] = HostMemory(kind, size)
        if kind != "managed":  # it would migrate
            self._in_use.append(have.bytes[:size])
        return have

    def _landed(self, layout: Layout) -> Bytes:
        """Memory for an image of either side, shared by both sides of an operation."""
        return self._host("pinned", "landed", layout.host_bytes).bytes

    def _payload(self, way: str, size: int) -> Bytes:
        """Random bytes, the same for every variant of a case."""
        if way not in self._payloads:
            if self._random.nbytes < size + GUARD:
                wanted = max(size + GUARD, 2 * self._random.nbytes)
                self._random = random_bytes(wanted, self._rng)
            start = int(self._rng.integers(0, self._random.nbytes - size, endpoint=True))
            # Words must be aligned.
            self._payloads[way] = self._random[start // 16 * 16 :][:size]
        return self._payloads[way]


def _flush_all(memory: Iterable[Bytes]) -> None:
    for piece in memory:
        flush(piece)
