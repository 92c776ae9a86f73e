"""Moves of pieces without a GPU: memory of any kind is host memory, a method is Python."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.study import Case, CaseValue
from kernels.common.arrays import bytes_at
from kernels.common.moves import moving, workload
from tests.kernels.device import FakeDevice, FakeHost


def move(size: int, count: int, direction: str) -> Case:
    values: dict[str, CaseValue] = {"size": size, "count": count, "direction": direction}
    return Case(values, size * count, "default")


def listed(
    size: int,
    count: int,
    direction: str = "h2d",
    host: str = "scattered",
    device: str = "packed",
    **more: CaseValue,
) -> Case:
    """A case of pieces at the places of a list."""
    values = move(size, count, direction).values
    return Case({**values, "host": host, "device": device, **more}, size * count, "default")


def fake_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the shared workload take plain host memory only."""
    for module in (workload, moving):
        monkeypatch.setattr(module, "DeviceArray", FakeDevice)
    monkeypatch.setattr(workload, "HostMemory", FakeHost)


class Mover:
    """A method in Python with the interface of bindings.h, and its possible faults."""

    def __init__(self, fault: str, host: int, device: int, **pieces: Any) -> None:
        self.fault, self.pieces = fault, SimpleNamespace(**pieces)
        self.host, self.device = host, device

    def launch(self, stream: int) -> None:
        p = self.pieces
        for i in range(p.count):
            ends = self.host + i * p.pitch, self.device + i * p.size
            source, target = ends if getattr(p, "to_device", True) else ends[::-1]
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
        if self.fault == "gap" and not getattr(p, "to_device", True):
            bytes_at(self.host + p.size, 1)[:] = 0


def python_module(fault: str = "") -> Any:
    def bind(host: int, device: int, **pieces: Any) -> Mover:
        return Mover(fault, host, device, **pieces)

    return SimpleNamespace(bind=bind)


def drawn() -> np.random.Generator:
    return np.random.default_rng(0)
