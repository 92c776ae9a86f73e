"""Moves of pieces without a GPU: memory of any kind is host memory, a method is Python."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from analysis.study import Case, CaseValue
from kernels.common.arrays import bytes_at


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


class Mover:
    """A method in Python with the interface of bindings.h."""

    def __init__(self, host: int, device: int, **pieces: Any) -> None:
        self.pieces = SimpleNamespace(**{"to_device": True, "places": 0, "landing": 0, **pieces})
        self.host, self.device = host, device

    def launch(self, stream: int) -> None:
        p = self.pieces
        places: list[Any] = [(i * p.pitch, i * p.size) for i in range(p.count)]
        if p.places:
            places = bytes_at(p.places, 16 * p.count).view(np.int64).reshape(-1, 2).tolist()
        for on_host, on_device in places:
            host, device = self.host + on_host, self.device + on_device
            target, source = (device, host) if p.to_device else (host, device)
            bytes_at(target, p.size)[:] = bytes_at(source, p.size)
            if p.landing:
                bytes_at(p.landing + on_host, p.size)[:] = bytes_at(p.source + on_device, p.size)

    def cpu_times(self, stream: int, count: int) -> list[float]:
        return [1e-6] * count


def python_module() -> Any:
    return SimpleNamespace(bind=Mover)


def drawn() -> np.random.Generator:
    return np.random.default_rng(0)
