"""The workload without a GPU: page-locked and device memory are host memory, a gather is Python."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.study import Case, CaseValue
from analysis.toolchain.modules import load_python
from kernels.common import shared_pool
from tests.kernels.device import FakeDevice, FakeHost
from tests.repository import STUDIES

POOL = STUDIES["pool_gather"]
WORKLOADS, DRAWS = (load_python(POOL, name) for name in ("workload", "draws"))


def case(rows: int = 300, layout: str = "scattered", pool_mib: int = 1) -> Case:
    values: dict[str, CaseValue] = {"rows": rows, "pool_mib": pool_mib, "layout": layout}
    return Case(values, rows * POOL.constants["token_bytes"], "default")


class DeviceMemory(FakeDevice):
    """Device memory as the bindings see it."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, what: str) -> None:
        super().__init__(shape, dtype, what)
        self.shape = shape

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        interface: dict[str, object] = dict(self.array.__array_interface__)
        return {key: interface[key] for key in ("shape", "typestr", "data", "version")}

    def get(self, out: np.ndarray | None = None) -> np.ndarray:
        return super().get(np.empty_like(self.array) if out is None else out)


class FakePool:
    """Pools of this host, which has room for `room` bytes; `made` are those that were made."""

    room = 2**62
    made: ClassVar[list[FakePool]] = []

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        if size > self.room:
            raise Skip(f"a pool of {size} B: this host allows {self.room} B")
        self.bytes = rng.integers(0, 256, size, np.uint8)
        self.is_open = True
        self.made.append(self)

    def close(self) -> None:
        self.is_open = False


def fake_workload(
    monkeypatch: pytest.MonkeyPatch, room: int = 2**62, largest_pool_mib: int = 4, **constants: int
) -> Any:
    """The study's workload with little memory, all of it plain, and nothing shared yet."""
    monkeypatch.setattr(WORKLOADS, "DeviceArray", DeviceMemory)
    monkeypatch.setattr(WORKLOADS, "_SHARED", shared_pool.Shared())
    monkeypatch.setattr(shared_pool, "HostMemory", FakeHost)
    monkeypatch.setattr(shared_pool, "LargePool", FakePool)
    monkeypatch.setattr(FakePool, "room", room)
    monkeypatch.setattr(FakePool, "made", [])
    settings = {**POOL.constants, "largest_pool_mib": largest_pool_mib, **constants}
    return WORKLOADS.Workload(settings, np.random.default_rng(0))


class Gatherer:
    """A gather in Python, as bindings.cpp offers one, and what can go wrong with it."""

    def __init__(self, fault: str, arguments: dict[str, Any]) -> None:
        self.fault, self.arguments = fault, arguments
        self.sets: list[int] = []
        self.is_open = True

    def launch(self, stream: int) -> None:
        assert self.is_open
        current = self.arguments["current"]
        current[0] = set = (current[0] + 1) % len(self.arguments["pairs"].array)
        self.sets.append(int(set))
        dst, pairs = self.arguments["dst"].array, self.arguments["pairs"].array[set]
        rows = self.arguments["pool"][pairs[:, 0]]
        if self.arguments["scales"] is not None:
            scales = self.arguments["scales"].array[pairs[:, 0]]
            rows = np.concatenate([rows[:, :512], scales, rows[:, 512:]], axis=1)
        if self.fault == "last row":
            pairs, rows = pairs[:-1], rows[:-1]
        dst[pairs[:, 1]] = rows
        if self.fault == "bit":
            dst[7, 600] ^= 1
        if self.fault == "behind":
            dst[len(pairs), 3] = 0

    def flush(self, set: int) -> bool:
        assert 0 <= set < len(self.arguments["pairs"].array)
        return False

    def close(self) -> None:
        self.is_open = False


def python_module(fault: str = "") -> Any:
    return SimpleNamespace(bind=lambda **arguments: Gatherer(fault, arguments))
