"""Pieces in memory of each kind, and the operation of each case on them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from analysis.api.measure import Operation
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import Bytes, move_to_host
from kernels.common.moves.layout import GUARD
from kernels.common.moves.moving import Moving, OnDevice, OnHost
from kernels.common.moves.workload import Workload as Pieces
from kernels.common.outputs import POISON, wrong_byte

from .kinds import memory_of
from .price import Pressure, Price
from .work import worked_on


class Workload(Pieces):
    """Adds directions: `both` at once; `round_trip`, with work on the device; `in_place`, a step of
    work on data that stays on the device. Cases without a direction are about the memory itself."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        super().__init__(constants, rng)
        self._work_rounds = constants["work_rounds"]
        self._priced: Bytes | None = None

    def prepare(self, case: Case) -> None:
        super().prepare(case)
        self._priced = None

    def kind(self, variant: Variant) -> str:
        return memory_of(variant.name)

    def bind(self, variant: Variant, module: Any) -> Operation:
        if "held_bytes" in self.case.values:
            return Pressure(self.kind(variant), self.case.number("held_bytes"))
        if "direction" not in self.case.values:
            if self._priced is None:
                self._priced = self.random(self.case.number("size"))
            return Price(self.kind(variant), self._priced)
        return super().bind(variant, module)

    def moving(self, kind: str, module: Any) -> Operation:
        match self.case["direction"]:
            case "both":
                return self._both(kind, module)
            case "round_trip":
                return self._round_trip(kind, module)
            case "in_place":
                return self._in_place(kind, module)
            case "h2d" | "d2h":
                return super().moving(kind, module)
        expected = "h2d, d2h, both, round_trip or in_place"
        raise FieldError("direction", expected, self.case["direction"])

    def to_device(self, kind: str, module: Any, way: str = "there") -> Moving:
        operation = super().to_device(kind, module, way)
        if hasattr(operation.method, "output"):
            source = self.source(kind, way).bytes[GUARD:]
            self.forget_source(kind, way)
            return ToTensor(operation.method, source, self.payload(way))
        if kind == "managed":
            operation.reset = partial(move_to_host, self.source(kind, way).bytes)
        return operation

    def _both(self, kind: str, module: Any) -> Operation:
        there, back = self.to_device(kind, module), self.to_host(kind, module, "back")
        at_once = module.Both(there.method, back.method)
        return Moving(at_once, [*there.targets, *back.targets], takes_cpu_time=False)

    def _round_trip(self, kind: str, module: Any) -> Operation:
        landing = self.host(kind, "back", self.on_host.image_bytes)
        source = self.source(kind, "there")
        method = self.method(module, source, self.device("there"), landing=landing.pointer + GUARD)
        expected = worked_on(self.payload("there"), self._work_rounds)
        return self.made(method, [OnHost(self.on_host, landing, expected, self.landed())])

    def _in_place(self, kind: str, module: Any) -> Operation:
        host = self.host(kind, "there", self.on_host.image_bytes)
        device, payload = self.device("there"), self.payload("there")
        target = self.arriving(device, worked_on(payload, 1))
        return InPlace(self.method(module, host, device), target, payload)


class InPlace(Moving):
    """A step of work on data that is on the device before and after the step."""

    def __init__(self, method: Any, target: OnDevice, payload: Bytes) -> None:
        super().__init__(method, [target], takes_cpu_time=False)
        self._target, self._payload = target, payload

    def poison(self) -> None:
        """Restore the data, so that the next launch is the first step on it."""
        target = self._target
        target.device.put(target.side.put(target.landed, self._payload, POISON))


class ToTensor(Moving):
    """A tensor that PyTorch places on the device. It may get the memory of another variant's
    tensor, so each operation moves different bytes."""

    _made = itertools.count(1)

    def __init__(self, method: Any, source: Bytes, payload: Bytes) -> None:
        super().__init__(method, [], takes_cpu_time=False)
        self._payload = payload ^ np.uint8(next(self._made) % 255 + 1)
        source[: payload.nbytes] = self._payload

    def poison(self) -> None:
        """Poison the previous tensor's memory, which the next one will get."""
        if self.method.output is not None:
            self.method.output.fill_(POISON).cpu()  # the copy waits for the filling
            self.method.output = None

    def check(self) -> str | None:
        return wrong_byte(self.method.output.cpu().numpy(), self._payload)
