"""Forked processes share work: their results, their errors and their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool

import psutil
import pytest

from analysis.base import forked
from analysis.base.errors import FieldError
from analysis.base.forked import forked_map
from tests.waiting import wait_for

PARENT = r"""
import os, time
from analysis.base import forked
from analysis.base.forked import forked_map

forked.cpus = lambda: 2

def work(item):
    os.write(1, f"{os.getpid()}\n".encode())  # at once, as both processes write
    time.sleep(600)

forked_map(work, range(2))
"""


@pytest.fixture
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "cpus", lambda: 2)


@pytest.mark.usefixtures("two_cpus")
def test_results_of_other_processes_come_in_the_order_of_the_items() -> None:
    found = forked_map(lambda item: (item, os.getpid()), range(5))
    assert [item for item, _ in found] == [0, 1, 2, 3, 4]
    assert os.getpid() not in {process for _, process in found}


@pytest.mark.parametrize("items", [[], [7]])
def test_one_item_needs_no_process(items: list[int]) -> None:
    assert forked_map(lambda item: (item, os.getpid()), items) == [(n, os.getpid()) for n in items]


def test_one_cpu_needs_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "cpus", lambda: 1)
    assert forked_map(lambda _: os.getpid(), range(2)) == [os.getpid()] * 2


@pytest.mark.usefixtures("two_cpus")
def test_a_forked_process_may_fork() -> None:
    assert forked_map(lambda n: forked_map(lambda m: n * m, [1, 2]), [3, 4]) == [[3, 6], [4, 8]]


@pytest.mark.usefixtures("two_cpus")
def test_the_caller_gets_the_error_of_an_item() -> None:
    def fail(item: int) -> None:
        raise FieldError(f"field {item}", "none", item)

    with pytest.raises(FieldError, match="field 1: expected none, got 1") as raised:
        forked_map(fail, [1, 2])
    assert raised.value.field == "field 1"


@pytest.mark.usefixtures("two_cpus")
def test_a_killed_process_is_an_error() -> None:
    with pytest.raises(BrokenProcessPool):
        forked_map(lambda _: os.kill(os.getpid(), signal.SIGKILL), range(2))


def test_the_processes_end_with_their_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        started = [int(parent.stdout.readline()) for _ in range(2)]
        parent.kill()
    wait_for(lambda: not any(map(psutil.pid_exists, started)))


@pytest.mark.usefixtures("two_cpus")
def test_the_caller_may_ask_for_fewer_processes() -> None:
    assert forked_map(lambda _: os.getpid(), range(3), max_processes=1) == [os.getpid()] * 3
