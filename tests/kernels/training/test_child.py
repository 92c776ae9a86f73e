"""The work of a process on request, with a PyTorch that only notes calls."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import cycle
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["training"]
CHILD = load_python(STUDY, "child")
WORKS = load_python(STUDY, "works")
ALLOCATORS = load_python(STUDY, "allocators")
CPUS = os.sched_getaffinity(0)
ORDER = {"settings": "", "module": None}


class Noted:
    """A work of two timed steps and one before them that notes when it is made, done and gone."""

    steps = 2
    untimed = 1

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        notes.append("made")

    def run(self, counting: Any) -> Any:
        self._notes.append(f"done {type(counting).__name__}")
        return WORKS.Run([1.5], WORKS.Times(2.0, 4.0, (1.0, 2.0)))

    def __del__(self) -> None:
        self._notes.append("gone")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    noted: list[str] = []
    cuda = SimpleNamespace(
        synchronize=lambda: noted.append("synchronize"),
        empty_cache=lambda: noted.append("empty_cache"),
        mem_get_info=lambda: (7, 10),
    )
    torch = SimpleNamespace(
        cuda=cuda,
        use_deterministic_algorithms=lambda _: None,
        utils=SimpleNamespace(deterministic=SimpleNamespace()),
        _C=SimpleNamespace(_cuda_clearCublasWorkspaces=lambda: noted.append("workspaces")),
    )
    memory = cycle([ALLOCATORS.Memory(30, 20, 4), ALLOCATORS.Memory(30, 20, 10)])
    allocator = SimpleNamespace(
        memory=lambda: next(memory),
        reset=lambda: noted.append("reset"),
        counting=lambda: SimpleNamespace(seconds=1.0, allocations=8),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(CHILD, "make", lambda settings, module: allocator)
    monkeypatch.setattr(CHILD, "WORKS", {"noted": (lambda: Noted(noted), 0)})
    yield noted
    CHILD.stay_on(CPUS)


def test_a_work_is_begun_once_and_is_gone_before_memory_is_freed(notes: list[str]) -> None:
    worker = CHILD.Worker(ORDER)
    emptied = ["workspaces", "synchronize", "empty_cache", "reset"]
    assert worker.answer({"drop": True}) == {"free": 7}
    assert notes == emptied
    assert worker.answer({"begin": "noted"}) == {"values": [1.5]}
    assert notes[4:] == ["made", "done TimeInCalls", "synchronize"]
    worker.answer({"drop": True})
    assert notes[7:] == ["gone", *emptied]
    with pytest.raises(RuntimeError, match=r"^no work was begun$"):
        worker.answer({"counted": False, "cpu": 0})


def test_a_work_is_made_on_all_cpus_and_done_on_the_one_that_is_asked_for(
    notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made_on: list[set[int]] = []

    def made() -> Noted:
        made_on.append(os.sched_getaffinity(0))
        return Noted(notes)

    monkeypatch.setattr(CHILD, "WORKS", {"noted": (made, 0)})
    worker, is_over = CHILD.Worker(ORDER), Event()
    other = Thread(target=is_over.wait)
    other.start()
    try:
        for cpu in CPUS:
            worker.answer({"begin": "noted"})
            worker.answer({"counted": False, "cpu": cpu})
            for thread in (0, other.native_id or 0):
                assert os.sched_getaffinity(thread) == {cpu}
    finally:
        is_over.set()
        other.join()
    assert made_on == [CPUS] * len(CPUS)


def test_metrics_are_per_step_but_for_bytes_and_shares(notes: list[str]) -> None:
    worker = CHILD.Worker(ORDER)
    worker.answer({"begin": "noted"})
    assert worker.answer({"counted": True, "cpu": max(CPUS)}) == {
        "values": [1.5],
        "steps": (1.0, 2.0),
        "metrics": {
            "host_time": 2.0,
            "submit_time": 1.0,
            "gpu_time": 1.5,
            "driver_calls": 2.0,
            "allocation_time": 0.5,
            "allocations": 4.0,
            "allocation_share": 0.25,
            "reserved": 30,
            "active": 20,
        },
    }
    assert notes[-1] == "done SimpleNamespace"
