"""Memory for the pieces of a case, random bytes in it, and the operation of a variant on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np

from analysis.api.measure import Operation, flush
from analysis.api.memory import DeviceArray
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import Bytes
from kernels.common.host_memory import HostMemory
from kernels.common.random_bytes import random_bytes

from .layout import GUARD, Side, side_of
from .moving import Moving, OnDevice, OnHost

MARK_BYTES: Final = 32 * 2**20
"""Bytes of device memory that a memset sets on a busy stream. That takes longer than a call needs
to look at the stream."""
MAX_QUEUED_OPERATIONS: Final = 32
"""More operations than this may fill the driver's queue, and then submitting waits for the GPU."""


class Workload:
    """The pieces of one case at a time, the same for every variant. Host memory is kept for later
    cases and grows as needed.

    Case keys: `size`, `count`, `direction` (h2d or d2h). `host` and `device`, the layouts of both
    sides, come with a list of places; without them, pieces are pitched on the host and packed on
    the device. `busy`: 1 if the stream has work when the call is made. `streams`, `threads` and
    `blocks` are arguments of bind().
    """

    operation: ClassVar[type[Moving]] = Moving
    takes_cpu_time: ClassVar = True
    """Whether ways of moving pieces of a list have the metric cpu_time."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        del constants
        self._rng = rng
        self._random = np.empty(0, np.uint8)
        self._memory: dict[tuple[str, str], HostMemory] = {}

    def prepare(self, case: Case) -> None:
        """FieldError for an unknown layout or no pieces."""
        self.case = case
        self._in_use: list[Bytes] = []  # host memory of the operation, and where checks look
        self._payloads: dict[str, Bytes] = {}
        self._devices: dict[str, DeviceArray] = {}
        self._sources: set[tuple[str, str]] = set()
        if "count" in case.values:
            self.on_host, self.on_device = self.sides()
            self._arguments = {
                key: case.number(key)
                for key in ("streams", "threads", "blocks")
                if key in case.values
            }
            if self.is_listed:
                self._arguments["places"] = self._list()
            if "busy" in case.values and case.number("busy"):
                self._mark = DeviceArray((MARK_BYTES,), np.uint8, "mark")
                self._arguments |= {"mark": self._mark.pointer, "mark_bytes": MARK_BYTES}

    @property
    def is_listed(self) -> bool:
        """Whether the places of the pieces are in a list."""
        return "host" in self.case.values

    def sides(self) -> tuple[Side, Side]:
        """The layouts of the pieces on the host and on the device."""
        values = {"host": "pitched", "device": "packed", **self.case.values}
        on_host, on_device = (
            side_of(str(values[key]), self.case, self._rng) for key in ("host", "device")
        )
        return on_host, on_device

    def bind(self, variant: Variant, module: Any) -> Operation:
        """FieldError for an unknown direction, Skip if this machine lacks the memory."""
        self._in_use = []
        kind = self.kind(variant)
        operation = self.moving(kind, module)
        operation.settle = partial(_flush_all, tuple(self._in_use))
        # In a stream blocked until all is enqueued, a copy of pageable memory would wait forever.
        is_long = self.case.number("count") > MAX_QUEUED_OPERATIONS
        operation.waits = variant.host_work or kind == "pageable" or is_long
        return operation

    def kind(self, variant: Variant) -> str:
        """The kind of host memory that the variant moves pieces from or to."""
        del variant
        return "pinned"

    def moving(self, kind: str, module: Any) -> Operation:
        """The operation of the case's direction."""
        match self.case["direction"]:
            case "h2d":
                return self.to_device(kind, module)
            case "d2h":
                return self.to_host(kind, module)
        raise FieldError("direction", "h2d or d2h", self.case["direction"])

    def to_device(self, kind: str, module: Any, way: str = "there") -> Moving:
        device = self.device(way)
        method = self.method(module, self.source(kind, way), device)
        return self.made(method, [self.arriving(device, self.payload(way))])

    def to_host(self, kind: str, module: Any, way: str = "there") -> Moving:
        memory = self.host(kind, way, self.on_host.image_bytes)
        method = self.method(module, memory, self.device_source(way), to_device=False)
        return self.made(method, [OnHost(self.on_host, memory, self.payload(way), self.landed())])

    def made(self, method: Any, targets: list[OnDevice | OnHost]) -> Moving:
        return self.operation(method, targets, self.is_listed and self.takes_cpu_time)

    def arriving(self, device: DeviceArray, payload: Bytes) -> OnDevice:
        """A target in device memory that expects `payload`."""
        return OnDevice(self.on_device, device, payload, self.landed())

    def method(self, module: Any, host: HostMemory, device: DeviceArray, **more: int | bool) -> Any:
        """The variant's method on these pieces."""
        return module.bind(
            host.pointer + GUARD,
            device.pointer + GUARD,
            size=self.on_host.size,
            pitch=self.on_host.pitch,
            count=self.on_host.count,
            **self._arguments,
            **more,
        )

    def source(self, kind: str, way: str) -> HostMemory:
        """Host memory with the pieces, which are written once in a case."""
        memory = self.host(kind, way, self.on_host.image_bytes)
        if (kind, way) not in self._sources:
            self.on_host.put(memory.bytes, self.payload(way))
            self._sources.add((kind, way))
        return memory

    def forget_source(self, kind: str, way: str) -> None:
        """Write the pieces again for the next variant: this one's operation changes them."""
        self._sources.discard((kind, way))

    def device_source(self, way: str) -> DeviceArray:
        """Device memory with the pieces."""
        is_new = way not in self._devices
        device = self.device(way)
        if is_new:
            device.put(self.on_device.put(self.landed(), self.payload(way)))
        return device

    def device(self, way: str) -> DeviceArray:
        """Device memory for the pieces, the same for all variants of a case."""
        if way not in self._devices:
            self._devices[way] = DeviceArray((self.on_device.image_bytes,), np.uint8, "device")
        return self._devices[way]

    def host(self, kind: str, way: str, size: int) -> HostMemory:
        """At least `size` bytes of `kind`; the same memory as long as it suffices."""
        have = self._memory.get((kind, way))
        if have is None or have.bytes.nbytes < size:
            if have is not None:
                have.close()
            have = self._memory[kind, way] = HostMemory(kind, size)
        if kind != "managed":  # it would migrate
            self._in_use.append(have.bytes[:size])
        return have

    def landed(self) -> Bytes:
        """Pinned memory for an image of either side, shared by both sides of an operation."""
        size = max(self.on_host.image_bytes, self.on_device.image_bytes)
        return self.host("pinned", "landed", size).bytes

    def payload(self, way: str) -> Bytes:
        """Random bytes, the same for every variant of a case."""
        if way not in self._payloads:
            self._payloads[way] = self.random(self.on_host.packed_bytes)
        return self._payloads[way]

    def random(self, size: int) -> Bytes:
        """A part of random bytes that are kept, aligned for words."""
        if self._random.nbytes < size + GUARD:
            self._random = random_bytes(max(size + GUARD, 2 * self._random.nbytes), self._rng)
        start = int(self._rng.integers(0, self._random.nbytes - size, endpoint=True))
        return self._random[start // 16 * 16 :][:size]

    def _list(self) -> int:
        """Address of the list of places: int64 [count, 2]."""
        count = self.on_host.count
        memory = self.host("pinned", "places", 16 * count)
        places = memory.bytes[: 16 * count].view(np.int64).reshape(count, 2)
        places[:, 0], places[:, 1] = self.on_host.offsets, self.on_device.offsets
        return memory.pointer


def _flush_all(memory: Iterable[Bytes]) -> None:
    for piece in memory:
        flush(piece)
