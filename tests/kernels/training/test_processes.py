"""Processes with an allocator each: their answers, their errors, and that they outlive nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from analysis import ROOT
from analysis.toolchain.modules import load_python
from tests.kernels.training.fake_child import fakes, pids_of
from tests.repository import STUDIES
from tests.waiting import wait_for

STUDY = STUDIES["training"]
CHILD = load_python(STUDY, "child")
CHILDREN = load_python(STUDY, "children")
ALLOCATORS = load_python(STUDY, "allocators")
WORKS = load_python(STUDY, "works")


@pytest.fixture(scope="module")
def children() -> Iterator[Any]:
    made = fakes()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("work", "error"),
    [
        ("fails", "one: first line second line"),
        ("dies", "one: its process ended without a word"),
        ("hangs", "one: no answer within 0.2 s"),
    ],
)
def test_a_process_that_ends_is_one_line_and_is_started_anew(
    children: Any, work: str, error: str
) -> None:
    child, (before, _) = children.get("one"), pids_of(children, "one")
    with pytest.raises(CHILDREN.ChildError, match=rf"^{error}$"):
        child.ask(within_s=0.2 if work == "hangs" else 30, work=work)
    assert child.is_gone and not psutil.pid_exists(before)
    assert pids_of(children, "one")[0] != before


def test_all_are_asked_whatever_becomes_of_one(children: Any) -> None:
    orders = {"first": {"module": "a"}, "broken": {"is_broken": True}, "second": {"module": "b"}}
    answers, wrong = children.ask_all(orders, work="")
    assert [answer["order"]["module"] for answer in answers.values()] == ["a", "b"]
    assert wrong == {"broken": "broken: no allocator of this kind"}


def test_they_end_with_the_process_that_asks_them() -> None:
    program = """
import time
from tests.kernels.training.fake_child import fakes, pids_of
children = fakes()
print(*pids_of(children, "one"), flush=True)
time.sleep(60)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        pids = [int(word) for word in asking.stdout.readline().split()]
        asking.kill()
    assert len(pids) == 2
    wait_for(lambda: not any(map(psutil.pid_exists, pids)))


# The work of a process, with a PyTorch that only notes calls.


class Noted:
    """A work of two timed steps and one before them that notes when it is made, done and gone."""

    steps, untimed = 2, 1

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        notes.append("made")

    def run(self, counting: Any) -> Any:
        self._notes.append(f"done {type(counting).__name__}")
        return WORKS.Run([1.5], WORKS.Times(2.0, 4.0, (1.0, 2.0)))

    def __del__(self) -> None:
        self._notes.append("gone")


def test_a_work_is_measured_and_gone_before_memory_is_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes: list[str] = []
    allowed = os.sched_getaffinity(0)

    def noting(name: str) -> Any:
        return lambda: notes.append(name)

    cuda = {name: noting(name) for name in ("synchronize", "empty_cache")}
    torch = SimpleNamespace(
        cuda=SimpleNamespace(**cuda, mem_get_info=lambda: (7, 10)),
        use_deterministic_algorithms=lambda _: None,
        utils=SimpleNamespace(deterministic=SimpleNamespace()),
        _C=SimpleNamespace(_cuda_clearCublasWorkspaces=noting("workspaces")),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    memory = iter([ALLOCATORS.Memory(30, 20, 4), ALLOCATORS.Memory(30, 20, 10)])
    allocator = SimpleNamespace(
        reset=noting("reset"),
        memory=lambda: next(memory),
        counting=lambda: SimpleNamespace(seconds=1.0, allocations=8),
    )
    monkeypatch.setattr(CHILD, "make", lambda settings, module: allocator)
    monkeypatch.setattr(CHILD, "WORKS", {"noted": (lambda: Noted(notes), 0)})
    worker = CHILD.Worker({"settings": "", "module": None})
    emptied = ["workspaces", "synchronize", "empty_cache", "reset"]
    assert worker.answer({"drop": True}) == {"free": 7}
    assert notes == emptied
    assert worker.answer({"begin": "noted"}) == {"values": [1.5]}
    assert notes[4:] == ["made", "done TimeInCalls", "synchronize"]
    times = {"host_time": 2.0, "submit_time": 1.0, "gpu_time": 1.5, "allocation_time": 0.5}
    counts = {"driver_calls": 2.0, "allocations": 4.0, "allocation_share": 0.25}
    memory_bytes = {"reserved": 30, "active": 20}  # all others are per step
    answer = worker.answer({"counted": True, "cpu": min(os.sched_getaffinity(0))})
    assert answer["metrics"] == times | counts | memory_bytes
    assert os.sched_getaffinity(0) == {min(allowed)}
    worker.answer({"drop": True})
    assert notes[8:] == ["gone", *emptied]
    with pytest.raises(RuntimeError, match=r"^no work was begun$"):
        worker.answer({"counted": False, "cpu": 0})
    CHILD.stay_on(allowed)
