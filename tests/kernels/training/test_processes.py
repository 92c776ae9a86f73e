"""Processes with an allocator each: their answers, their errors, and that they outlive nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import psutil
import pytest

from analysis import ROOT
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES
from tests.waiting import wait_for

CHILDREN = load_python(STUDIES["training"], "children")


class Fake:
    """Answers with the order that made it; some works end it."""

    def __init__(self, order: dict[str, Any]) -> None:
        if order.get("is_broken"):
            raise RuntimeError("no allocator\nof this kind")
        self._order = order

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["work"]:
            case "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hangs":
                time.sleep(60)
            case "fails":
                raise ValueError("first line\n  second line")
        return {"order": self._order, "by": os.getpid()}


def test_a_process_that_ends_is_one_line_and_is_started_anew() -> None:
    children = CHILDREN.Children(Fake)
    for work, error in (
        ("fails", "one: first line second line"),
        ("dies", "one: its process ended without a word"),
        ("hangs", "one: no answer within 0.2 s"),
    ):
        child = children.get("one")
        before = child.ask(work="")["by"]
        with pytest.raises(CHILDREN.ChildError, match=rf"^{error}$"):
            child.ask(within_s=0.2 if work == "hangs" else 30, work=work)
        assert child.is_gone and not psutil.pid_exists(before)
        assert children.get("one").ask(work="")["by"] != before
    orders = {"first": {"module": "a"}, "broken": {"is_broken": True}, "second": {"module": "b"}}
    answers, wrong = children.ask_all(orders, work="")
    assert [answer["order"]["module"] for answer in answers.values()] == ["a", "b"]
    assert wrong == {"broken": "broken: no allocator of this kind"}
    children.close()


def test_they_end_with_the_process_that_asks_them() -> None:
    program = """
import time
from tests.kernels.training.test_processes import CHILDREN, Fake
children = CHILDREN.Children(Fake)
print(children.get("one").ask(work="")["by"], children._server.pid, flush=True)
time.sleep(60)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        pids = [int(word) for word in asking.stdout.readline().split()]
        asking.kill()
    assert len(pids) == 2
    wait_for(lambda: not any(map(psutil.pid_exists, pids)))
