"""The rows that the gather draws, what must arrive, and the team of index_select."""

import os
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

GATHER = STUDIES["h2d_gather"]
WORKLOADS = load_python(GATHER, "workload")


def test_a_team_is_pinned_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch is a stub here, whose parallel work starts two threads, as OpenMP does."""
    done = threading.Event()
    helpers = [threading.Thread(target=done.wait) for _ in range(2)]

    def start(one: int) -> None:
        for helper in helpers:
            helper.start()

    stub = SimpleNamespace(zeros=lambda count: SimpleNamespace(add_=start))
    monkeypatch.setitem(sys.modules, "torch", stub)
    cores = sorted(os.sched_getaffinity(0))
    module = load_python(GATHER, "torch_index_select_pinned")
    try:
        pinned: list[Any] = []
        module.PinnedTeam().run(lambda: pinned.append(os.sched_getaffinity(0)))
        pinned += [os.sched_getaffinity(helper.native_id or 0) for helper in helpers]
        assert pinned == [{cores[number % len(cores)]} for number in range(3)]
        assert sorted(os.sched_getaffinity(0)) == cores
    finally:
        done.set()
        sys.modules.pop(module.__name__, None)
