"""The transfers' workload without a GPU: memory of any kind is host memory, a method is Python."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.study import Case, CaseValue
from analysis.toolchain.modules import load_python
from kernels.common.arrays import bytes_at
from tests.kernels.device import FakeDevice
from tests.repository import STUDIES

TRANSFERS = STUDIES["transfers"]
WORKLOADS = load_python(TRANSFERS, "workload")
MOVING, PRICE, WORK = (load_python(TRANSFERS, name) for name in ("moving", "price", "work"))


def move(size: int, count: int, direction: str) -> Case:
    values: dict[str, CaseValue] = {"size": size, "count": count, "direction": direction}
    return Case(values, size * count, "default")


class FakeHost:
    """Plain host memory under the name of any kind."""

    def __init__(self, kind: str, size: int) -> None:
        self.kind, self.bytes = kind, np.empty(size, np.uint8)
        self.pointer = int(self.bytes.ctypes.data)

    def close(self) -> None:
        self.bytes[:] = 0


def fake_workload(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The study's workload, all of its memory in plain host memory."""
    for module in (WORKLOADS, MOVING):
        monkeypatch.setattr(module, "DeviceArray", FakeDevice)
    for module in (WORKLOADS, PRICE):
        monkeypatch.setattr(module, "HostMemory", FakeHost)
    return WORKLOADS.Workload({"work_rounds": 3}, np.random.default_rng(0))


class Mover:
    """A method in Python with the interface of bindings.cpp, and its possible faults."""

    def __init__(self, fault: str, host: int, device: int, landing: int, **pieces: Any) -> None:
        self.fault, self.pieces = fault, SimpleNamespace(**pieces)
        self.host, self.device, self.landing = host, device, landing

    def launch(self, stream: int) -> None:
        p = self.pieces
        for i in range(p.count):
            ends = self.host + i * p.pitch, self.device + i * p.size
            source, target = ends if p.to_device else ends[::-1]
            size = p.size
            if i == p.count - 1:
                size -= self.fault == "short"
                size += self.fault == "long"
            data = bytes_at(source, size).copy()
            if self.fault == "bit" and i == 0:
                data[-1] ^= 1
            bytes_at(target, size)[:] = data
            if self.fault == "before" and i == 0:
                bytes_at(target - 1, 1)[:] = 0
        if self.fault == "gap" and not p.to_device:
            bytes_at(self.host + p.size, 1)[:] = 0


def python_module(fault: str = "") -> Any:
    def bind(host: int, device: int, landing: int = 0, **pieces: Any) -> Mover:
        return Mover(fault, host, device, landing, **pieces)

    return SimpleNamespace(memory="pinned", bind=bind)
