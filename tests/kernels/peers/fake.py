"""The study without a GPU: memory of all GPUs is host memory, and what moves rows is in Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.study import Case
from analysis.toolchain.modules import load_python
from kernels.common import large_pool
from kernels.common.arrays import bytes_at
from tests.kernels.cuda import Cuda, install
from tests.repository import STUDIES

PEERS = STUDIES["peers"]
WORKLOADS = load_python(PEERS, "workload")
POOLS = load_python(PEERS, "pools")
OUTPUTS = load_python(PEERS, "outputs")
REDUCTION = load_python(PEERS, "reduction")
DRAWS = load_python(PEERS, "draws")
MIB = 2**20


class Part:
    is_neighbour: bool
    sources: list[int]

    def __init__(self, **values: Any) -> None:
        self.__dict__ |= values


class Mover:
    """A variant's module in Python, with the plan in its source, with what it did."""

    def __init__(self, source: Path) -> None:
        found = re.search(r"kPlan = \{(.*?)\};", source.read_text())
        assert found is not None
        words = re.findall(r'"(\w+)"', found[1])
        names = ("rows_in", "moved_by", "written_to", "how", "beside")
        self.plan: dict[str, str] = dict(zip(names, words, strict=True))
        self.sets, self.rejoined = [0][:0], 0
        self.Part = Part

    def Bound(self, parts: list[Part], gpus: int, cpus: list[int]) -> Mover:
        assert cpus
        self.parts, self.gpus = parts, gpus
        self.sets_in_all = len(parts[0].sources) if parts else 2
        return self

    def restart(self) -> None:
        self.sets.clear()

    def launch(self, stream: int) -> None:
        turn = len(self.sets)
        number = 1 + (turn - 1) % (self.sets_in_all - 1) if turn else 0
        self.sets.append(number)
        for part in self.parts:
            move(part, number, self.how(part))

    def how(self, part: Part) -> str:
        return self.plan["beside" if part.is_neighbour else "how"]

    def rejoin(self, stream: int) -> None:
        self.rejoined += 1


def move(part: Any, number: int, how: str) -> None:
    """The share of a launch that one GPU does."""
    size = part.row_bytes
    drawn = bytes_at(part.pairs + 8 * number * part.set_rows, 8 * part.set_rows)
    pairs = drawn.view(np.int32).reshape(-1, 2)[part.begin :][: part.rows]
    if how == "copy":
        first = part.sources[number]
        landed = bytes_at(part.dst + part.begin * size, part.rows * size)
        landed[:] = bytes_at(part.pool + first * size, part.rows * size)
    else:
        sources, destinations = pairs.T
        if sources.size:
            arrived = rows_at(part.dst, destinations, size)
            arrived[destinations] = rows_at(part.pool, sources, size)[sources]


def rows_at(pointer: int, numbers: np.ndarray, size: int) -> np.ndarray:
    """The memory at an address up to the last of these rows, uint8 [rows, size]."""
    return bytes_at(pointer, (int(numbers.max()) + 1) * size).reshape(-1, size)


def fake_workload(monkeypatch: pytest.MonkeyPatch, room: int = 2**40, tile: int = 0) -> Any:
    """The study's workload, with all memory in plain host memory and GPUs of `room` bytes."""
    for module in (POOLS, large_pool):
        monkeypatch.setattr(module, "TILE", tile or module.TILE)
    install(monkeypatch, Cuda(room=room))
    monkeypatch.setattr(DRAWS, "MIN_ROWS_OF_SETS", 1)
    return WORKLOADS.Workload({**PEERS.constants, "largest_mib": 1}, np.random.default_rng(0))


def case(row_bytes: int = 656, rows: int = 40, pool_mib: int = 1) -> Case:
    values = {"row_bytes": row_bytes, "rows": rows, "pool_mib": pool_mib}
    return Case(values, rows * row_bytes, "default")
