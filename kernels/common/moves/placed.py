"""Pieces at any place on either side: their memory, their list, and the operation of each case."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from analysis.api.measure import Operation, flush, random_bytes
from analysis.api.memory import DeviceArray, HostMemory, cuda, cudart
from analysis.api.study import Case, FieldError, Variant, require_known

from .layout import GUARD, POISON, UNASKED, Bytes, wrong_bytes

LAYOUTS: Final = ("packed", "pitched", "scattered")
MARK_BYTES: Final = 32 * 2**20
"""Bytes of device memory that are set on a busy stream before the pieces are moved. That takes
longer than a call needs to look at the stream."""

FIRST_CALLS: Final = 2
"""Calls after a check whose CPU time does not count: the caches have forgotten the driver."""
CALLS: Final = 7
"""Calls whose CPU time counts, where they are short."""
SHORT_CALL_S: Final = 0.001


@dataclass(frozen=True)
class Side:
    """Slots of one memory, `pitch` bytes apart: piece i of `size` bytes lies in slot slots[i]."""

    size: int
    pitch: int
    slots: np.ndarray

    @property
    def image_bytes(self) -> int:
        return GUARD + self.pitch * len(self.slots) + GUARD

    @property
    def offsets(self) -> np.ndarray:
        """Byte of each piece after the guard."""
        return self.slots * self.pitch

    def put(self, image: Bytes, payload: Bytes) -> None:
        """Make `image` a source: the pieces of `payload` in their slots, UNASKED elsewhere."""
        image[:] = UNASKED
        self._rows(image)[self.slots, : self.size] = payload.reshape(-1, self.size)

    def wrong(self, image: Bytes, payload: Bytes, where: str) -> str | None:
        """The first fault of a target that was POISON before; None if all bytes are right."""
        rows = self._rows(image)
        if wrong := wrong_bytes(rows[self.slots, : self.size].reshape(-1), payload):
            return wrong
        around = (image[:GUARD], image[-GUARD:], rows[:, self.size :])
        changed = sum(int(np.count_nonzero(part != POISON)) for part in around)
        return f"{changed} bytes around the pieces on the {where} changed" if changed else None

    def _rows(self, image: Bytes) -> Bytes:
        return image[GUARD:-GUARD].reshape(len(self.slots), self.pitch)


def side_of(layout: str, size: int, count: int, rng: np.random.Generator) -> Side:
    """Slots in the order of the pieces, or else a random permutation. FieldError for an unknown
    layout."""
    require_known("layout", layout, LAYOUTS)
    slots = rng.permutation(count) if layout == "scattered" else np.arange(count)
    pitch = size if layout == "packed" else size + min(size, GUARD)
    return Side(size, pitch, slots.astype(np.int64))


class Workload:
    """Pinned memory is kept for later cases and grows as needed."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        del constants
        self._rng = rng
        self._memory: dict[str, HostMemory] = {}

    def prepare(self, case: Case) -> Placed:
        """FieldError for an impossible case."""
        for key in ("size", "count"):
            if case.number(key) < 1:
                raise FieldError(f"case {case.id}: {key}", "at least 1", case.number(key))
        require_known(f"case {case.id}: direction", str(case["direction"]), ("h2d", "d2h"))
        return Placed(self, case, self._rng)

    def host(self, use: str, size: int) -> Bytes:
        """`size` bytes of pinned memory; the same memory as long as it suffices."""
        have = self._memory.get(use)
        if have is None or have.bytes.nbytes < size:
            if have is not None:
                have.close()
            have = self._memory[use] = HostMemory("pinned", size)
        return have.bytes[:size]


class Placed:
    """The pieces of one case in both memories, and the list of their places."""

    def __init__(self, workload: Workload, case: Case, rng: np.random.Generator) -> None:
        size, count = case.number("size"), case.number("count")
        self.case = case
        self.is_to_device = case["direction"] == "h2d"
        self.on_host = side_of(str(case["host"]), size, count, rng)
        self.on_device = side_of(str(case["device"]), size, count, rng)
        self.payload = random_bytes(size * count, rng)
        self.host = workload.host("pieces", self.on_host.image_bytes)
        self.landed = workload.host("landed", self.on_device.image_bytes)
        self.places = workload.host("places", 16 * count).view(np.int64).reshape(count, 2)
        self.places[:, 0] = self.on_host.offsets
        self.places[:, 1] = self.on_device.offsets
        self.device = DeviceArray((self.on_device.image_bytes,), np.uint8, "device")
        self.mark = DeviceArray((MARK_BYTES if case.number("busy") else 1,), np.uint8, "mark")
        if self.is_to_device:
            self.on_host.put(self.host, self.payload)
        else:
            self.on_device.put(self.landed, self.payload)
            self.device.put(self.landed)

    def bind(self, variant: Variant, module: Any) -> Operation:
        del variant
        case = self.case
        options = {
            key: case.number(name)
            for key, name in (("streams", "threads"), ("blocks", "blocks"))
            if name in case.values
        }
        method = module.bind(
            int(self.host.ctypes.data) + GUARD,
            self.device.pointer + GUARD,
            int(self.places.ctypes.data),
            size=self.on_host.size,
            pitch=self.on_host.pitch,
            count=len(self.places),
            to_device=self.is_to_device,
            **options,
        )
        return Moving(self, method)


class Moving(Operation):
    """Moves all pieces of a list once. A busy stream has MARK_BYTES to set before."""

    def __init__(self, placed: Placed, method: Any) -> None:
        self.placed, self.method = placed, method
        self.launch = self._launch_on_busy if placed.case.number("busy") else method.launch
        self.settle = partial(flush, placed.host)
        self.waits = True

    def _launch_on_busy(self, stream: int) -> None:
        cuda(cudart.cudaMemsetAsync(self.placed.mark.pointer, 0, self.placed.mark.nbytes, stream))
        self.method.launch(stream)

    def poison(self) -> None:
        if self.placed.is_to_device:
            self.placed.device.fill(POISON)
        else:
            self.placed.host[:] = POISON

    def check(self) -> str | None:
        placed = self.placed
        if placed.is_to_device:
            image = placed.device.get(placed.landed)
            return placed.on_device.wrong(image, placed.payload, "device")
        return placed.on_host.wrong(placed.host, placed.payload, "host")

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """cpu_time: CPU time of all threads of the process until the call returns."""
        cuda(cudart.cudaStreamSynchronize(stream))
        taken: list[float] = []
        wanted = FIRST_CALLS + min(count, CALLS)
        while len(taken) < wanted:
            before = time.process_time_ns()
            self.launch(stream)
            taken.append((time.process_time_ns() - before) * 1e-9)
            cuda(cudart.cudaStreamSynchronize(stream))
            if max(taken) < SHORT_CALL_S:
                wanted = FIRST_CALLS + CALLS
        of_method: Mapping[str, Sequence[float]] = getattr(self.method, "samples", lambda _: {})(
            stream
        )
        return {"cpu_time": taken[FIRST_CALLS:], **of_method}
