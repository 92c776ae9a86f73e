"""Memory of each kind, random pieces in it, and the check of every way of moving them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import psutil

from analysis.errors import FieldError
from analysis.measure.cell import Operation, Skip
from analysis.measure.data import random_bytes
from analysis.measure.host_memory import HostMemory, NoHugePages
from analysis.measure.memory import (
    DeviceArray,
    cuda,
    cudart,
    first_difference,
    move_to_host,
    same_bytes,
)
from analysis.study import Case, Variant

POISON = 0xA5
UNASKED = 0x5A
"""Around and between the pieces of a source: a target that has it was given too much."""
GUARD = 4096
"""Bytes before and behind all pieces that must stay as they were; also the largest gap."""

MOST_HELD_OPERATIONS = 32
"""More than these may fill the driver's queue, and then submitting waits for the GPU."""

FACTOR, TERM = 1664525, 1013904223
"""What a step of work makes of a 32-bit word: word * FACTOR + TERM."""

WORK_BYTES = 64 * 2**20
PINNED_SHARE = 4
"""At most one part in so many of the memory that is free may be pinned to see what it does."""

Bytes = np.ndarray


@dataclass(frozen=True)
class Layout:
    """Where `count` pieces of `size` bytes lie: packed on the device, `pitch` apart on the host."""

    size: int
    count: int

    @property
    def pitch(self) -> int:
        return self.size + min(self.size, GUARD)

    @property
    def packed_bytes(self) -> int:
        return self.size * self.count

    @property
    def host_bytes(self) -> int:
        return GUARD + self.pitch * self.count + GUARD

    @property
    def device_bytes(self) -> int:
        return GUARD + self.packed_bytes + GUARD

    def pieces(self, host: Bytes) -> Bytes:
        """The pieces [count, size] in `host`, uint8 of at least host_bytes; a view."""
        return self._rows(host)[:, : self.size]

    def put(self, host: Bytes, payload: Bytes) -> None:
        """Make `host` a source: packed `payload` in its pieces, UNASKED everywhere else."""
        host[:GUARD] = host[self.host_bytes - GUARD : self.host_bytes] = UNASKED
        rows = self._rows(host)
        rows[:, self.size :] = UNASKED
        rows[:, : self.size] = payload.reshape(self.count, self.size)

    def image(self, payload: Bytes, around: int, out: Bytes) -> Bytes:
        """Make `out` what device memory holds: packed `payload`, the byte `around` elsewhere."""
        image = out[: self.device_bytes]
        image[:GUARD] = image[-GUARD:] = around
        image[GUARD:-GUARD] = payload
        return image

    def wrong_on_device(self, image: Bytes, payload: Bytes) -> str | None:
        """What is wrong with an image of the device's memory that should hold `payload`."""
        if wrong := _wrong(image[GUARD:][: payload.nbytes], payload):
            return wrong
        guards = np.concatenate([image[:GUARD], image[GUARD + payload.nbytes :]])
        return _changed(guards, "around the pieces on the device")

    def wrong_on_host(self, image: Bytes, payload: Bytes) -> str | None:
        """What is wrong with an image of host memory that should hold `payload` in its pieces."""
        landed = np.ascontiguousarray(self.pieces(image)).reshape(-1)
        if wrong := _wrong(landed, payload):
            return wrong
        if wrong := _changed(self._rows(image)[:, self.size :], "between the pieces"):
            return wrong
        end = self.host_bytes
        guards = np.concatenate([image[:GUARD], image[end - GUARD : end]])
        return _changed(guards, "around the pieces on the host")

    def _rows(self, host: Bytes) -> Bytes:
        return host[GUARD:][: self.pitch * self.count].reshape(self.count, self.pitch)


def _wrong(landed: Bytes, payload: Bytes) -> str | None:
    if same_bytes(landed, payload):
        return None
    byte = first_difference(landed, payload)
    return f"byte {byte}: expected {payload[byte]}, got {landed[byte]}"


def _changed(guard: Bytes, where: str) -> str | None:
    changed = int(np.count_nonzero(guard != POISON))
    return f"{changed} bytes {where} changed" if changed else None


def layout_of(case: Case) -> Layout:
    """The pieces of a case. FieldError where there are none."""
    size, count = case.number("size"), case.number("count")
    for key, number in (("size", size), ("count", count)):
        if number < 1:
            raise FieldError(f"case {case.id}: {key}", "at least 1", number)
    return Layout(size, count)


def worked_on(payload: Bytes, rounds: int) -> Bytes:
    """`payload`, whole 32-bit words, after `rounds` steps of work."""
    factor, term = 1, 0
    for _ in range(rounds):
        factor, term = factor * FACTOR % 2**32, (term * FACTOR + TERM) % 2**32
    words = payload.view(np.uint32) * np.uint32(factor) + np.uint32(term)
    return words.view(np.uint8)


class Workload:
    """Host memory is kept for later cases and grows with them; device memory is made a case."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._rng = rng
        self._work_rounds = constants["work_rounds"]
        self._random = np.empty(0, np.uint8)
        self._memory: dict[tuple[str, str], HostMemory] = {}
        self._case: Case | None = None
        self._payloads: dict[str, Bytes] = {}

    def prepare(self, case: Case) -> None:
        self._case = case
        self._payloads = {}

    def bind(self, variant: Variant, module: Any) -> Operation:
        """FieldError for a direction nobody knows, Skip where this machine lacks the memory."""
        case = self._case
        assert case is not None, "prepare comes before bind"
        try:
            if "pinned_bytes" in case.values:
                return Pressure(module.memory, case.number("pinned_bytes"))
            if "direction" not in case.values:
                return Price(module.memory, self._payload("there", case.number("size")))
            operation = self._moving(str(case["direction"]), layout_of(case), module)
        except NoHugePages as reason:
            raise Skip(str(reason)) from None
        # Held back until all is enqueued, a copy of pageable memory would wait forever.
        operation.waits = (
            variant.host_work
            or module.memory == "pageable"
            or layout_of(case).count > MOST_HELD_OPERATIONS
        )
        return operation

    def _moving(self, direction: str, layout: Layout, module: Any) -> Operation:
        match direction:
            case "h2d":
                return self._to_device(layout, module, "there")
            case "d2h":
                return self._to_host(layout, module, "there")
            case "both":
                there = self._to_device(layout, module, "there")
                return Both(there, self._to_host(layout, module, "back"))
            case "round_trip":
                return self._round_trip(layout, module)
            case "in_place":
                return self._in_place(layout, module)
        expected = "h2d, d2h, both, round_trip or in_place"
        raise FieldError("direction", expected, direction)

    def _to_device(self, layout: Layout, module: Any, way: str) -> Operation:
        host = self._host(module.memory, way, layout.host_bytes)
        payload = self._payload(way, layout.packed_bytes)
        layout.put(host.bytes, payload)
        device = DeviceArray((layout.device_bytes,), np.uint8, "device")
        method = self._method(module, layout, host, device)
        if hasattr(method, "output"):
            return ToTensor(method, payload)
        operation = ToDevice(method, device, layout, payload, self._landed(layout))
        if host.kind == "managed":
            operation.reset = partial(move_to_host, host.bytes)
        return operation

    def _to_host(self, layout: Layout, module: Any, way: str) -> Operation:
        host = self._host(module.memory, way, layout.host_bytes)
        payload = self._payload(way, layout.packed_bytes)
        device = self._on_device(layout, payload)
        method = self._method(module, layout, host, device, to_device=False)
        return ToHost(method, host, layout, payload, device, self._landed(layout))

    def _round_trip(self, layout: Layout, module: Any) -> Operation:
        host = self._host(module.memory, "there", layout.host_bytes)
        landing = self._host(module.memory, "back", layout.host_bytes)
        payload = self._payload("there", layout.packed_bytes)
        layout.put(host.bytes, payload)
        device = DeviceArray((layout.device_bytes,), np.uint8, "device")
        method = self._method(module, layout, host, device, landing=landing.pointer + GUARD)
        expected = worked_on(payload, self._work_rounds)
        return ToHost(method, landing, layout, expected, device, self._landed(layout))

    def _in_place(self, layout: Layout, module: Any) -> Operation:
        host = self._host(module.memory, "there", layout.host_bytes)
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
        """At least `size` bytes of `kind`, the same ones as long as they suffice."""
        have = self._memory.get((kind, way))
        if have is None or have.bytes.nbytes < size:
            if have is not None:
                have.close()
            have = self._memory[kind, way] = HostMemory(kind, size)
        return have

    def _landed(self, layout: Layout) -> Bytes:
        """Room for an image of either side; one for both sides of an operation."""
        return self._host("pinned", "landed", layout.host_bytes).bytes

    def _payload(self, way: str, size: int) -> Bytes:
        """Random bytes, the same for every variant of a case."""
        if way not in self._payloads:
            if self._random.nbytes < size + GUARD:
                wanted = max(size + GUARD, 2 * self._random.nbytes)
                self._random = random_bytes(wanted, self._rng)
            start = int(self._rng.integers(0, self._random.nbytes - size, endpoint=True))
            # Words must begin where words may begin.
            self._payloads[way] = self._random[start // 16 * 16 :][:size]
        return self._payloads[way]


class Moving(Operation):
    """An operation of a variant's method, which may have samples of its own."""

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
    """A tensor PyTorch puts where it likes on the device."""

    def __init__(self, method: Any, payload: Bytes) -> None:
        super().__init__(method)
        self.payload = payload

    def poison(self) -> None:
        """The next tensor is put where the last one was."""
        if self.method.output is not None:
            self.method.output.fill_(POISON).cpu()  # the copy waits for the filling
            self.method.output = None

    def check(self) -> str | None:
        return _wrong(self.method.output.cpu().numpy(), self.payload)


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
            # The CPU reads such memory very slowly, so the copy engine fetches it.
            through = DeviceArray(image.shape, np.uint8, "image")
            through.put(image)
            image = through.get(self.landed[: image.nbytes])
        return self.layout.wrong_on_host(image, self.payload)


class InPlace(ToDevice):
    """A step of work on data that is on the device before and after it."""

    def poison(self) -> None:
        """The next launch is the first step on fresh data."""
        self.device.put(self.layout.image(self.payload, POISON, self.landed))

    def check(self) -> str | None:
        return self._wrong_payload(worked_on(self.payload, 1))


class Both(Operation):
    """Both directions at once, each on a stream of its own."""

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


class Price(Operation):
    """Memory of one kind allocated, copied into, copied out of and freed.

    Its check: the driver takes it for what it is, and what was copied out is what was copied in.
    """

    def __init__(self, kind: str, payload: Bytes) -> None:
        HostMemory(kind, payload.nbytes).close()  # refused here, the case is skipped
        self._kind, self._payload = kind, payload
        self._out = np.zeros_like(payload)
        self._is_page_locked: bool | None = None
        self.launch = self._launch

    def poison(self) -> None:
        self._out[:] = POISON
        self._is_page_locked = None

    def check(self) -> str | None:
        expected = self._kind != "pageable"
        if self._is_page_locked != expected:
            return f"page-locked: expected {expected}, got {self._is_page_locked}"
        return _wrong(self._out, self._payload)

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """Seconds to allocate (pages present), register, write, read and free all of it."""
        del stream
        cycles = [self._cycle() for _ in range(count)]
        return {name: [cycle[name] for cycle in cycles] for name in cycles[0]}

    def _launch(self, stream: int) -> None:
        del stream
        self._cycle()

    def _cycle(self) -> dict[str, float]:
        memory = HostMemory(self._kind, self._payload.nbytes)
        self._is_page_locked = memory.is_page_locked()
        write = _seconds(lambda: np.copyto(memory.bytes, self._payload))
        read = _seconds(lambda: np.copyto(self._out, memory.bytes))
        memory.close()
        parts = {f"{part}_time": seconds for part, seconds in memory.seconds.items()}
        return parts | {"write_time": write, "read_time": read}


class Pressure(Operation):
    """Work in pageable memory while the variant's kind of memory holds `pinned_bytes`.

    Its check: the work comes to the right sum. Skip where memory is short.
    """

    def __init__(self, kind: str, pinned_bytes: int) -> None:
        available = psutil.virtual_memory().available
        if kind != "pageable" and pinned_bytes > available // PINNED_SHARE:
            raise Skip(f"{pinned_bytes} B is more than a quarter of {available} B available")
        HostMemory(kind, WORK_BYTES).close()  # refused here, the case is skipped
        self._kind, self._pinned_bytes = kind, pinned_bytes
        self._sum: int | None = None
        self.launch = lambda _: self._work()

    def poison(self) -> None:
        self._sum = None

    def check(self) -> str | None:
        expected = WORK_BYTES // 8
        return None if self._sum == expected else f"sum: expected {expected}, got {self._sum}"

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """work_time: seconds of the work."""
        del stream
        held = None if self._kind == "pageable" else HostMemory(self._kind, self._pinned_bytes)
        times = [_seconds(self._work) for _ in range(count)]
        if held is not None:
            held.close()
        return {"work_time": times}

    def _work(self) -> None:
        memory = HostMemory("pageable", WORK_BYTES)
        words = memory.bytes.view(np.uint64)
        words[:] = 1
        self._sum = int(words.sum())
        memory.close()


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - start) * 1e-9
