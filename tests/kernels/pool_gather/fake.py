"""The workload without a GPU, and a gather in Python."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.study import Case, CaseValue
from analysis.toolchain.modules import load_python
from kernels.common import shared_pool
from tests.kernels.cuda import array_of, install
from tests.repository import STUDIES

POOL = STUDIES["pool_gather"]
WORKLOADS, DRAWS = (load_python(POOL, name) for name in ("workload", "draws"))


def case(rows: int = 300, layout: str = "scattered", pool_mib: int = 1) -> Case:
    values: dict[str, CaseValue] = {"rows": rows, "pool_mib": pool_mib, "layout": layout}
    return Case(values, rows * POOL.constants["token_bytes"], "default")


def fake_workload(monkeypatch: pytest.MonkeyPatch, largest_pool_mib: int = 4, **more: int) -> Any:
    """The study's workload with little memory, and nothing shared yet."""
    install(monkeypatch)
    monkeypatch.setattr(WORKLOADS, "_SHARED", shared_pool.Shared())
    settings = {**POOL.constants, "largest_pool_mib": largest_pool_mib, **more}
    return WORKLOADS.Workload(settings, np.random.default_rng(0))


class Gatherer:
    """A gather in Python, as bindings.cpp offers one."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.sets: list[int] = []
        self.is_open = True

    def launch(self, stream: int) -> None:
        assert self.is_open
        current = self.arguments["current"]
        pairs = array_of(self.arguments["pairs"])
        current[0] = set = (current[0] + 1) % len(pairs)
        self.sets.append(int(set))
        rows = self.arguments["pool"][pairs[set][:, 0]]
        if self.arguments["scales"] is not None:
            scales = array_of(self.arguments["scales"])[pairs[set][:, 0]]
            rows = np.concatenate([rows[:, :512], scales, rows[:, 512:]], axis=1)
        array_of(self.arguments["dst"])[pairs[set][:, 1]] = rows

    def flush(self, set: int) -> bool:
        assert 0 <= set < len(self.arguments["pairs"])
        return False

    def close(self) -> None:
        self.is_open = False


def python_module() -> Any:
    return SimpleNamespace(bind=Gatherer)
