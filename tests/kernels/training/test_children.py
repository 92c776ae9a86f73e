"""Processes with an allocator each: what is wrong is one line, and they outlive nobody."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import pytest

from analysis import ROOT
from analysis.toolchain.modules import load_python
from tests.kernels.training.fake_child import fakes
from tests.repository import STUDIES
from tests.waiting import DEADLINE_S, wait_for

STUDY = STUDIES["training"]
CHILDREN = load_python(STUDY, "children")


@pytest.fixture(scope="module")
def children() -> Iterator[Any]:
    made = fakes()
    yield made
    made.close()


def by(child: Any) -> int:
    number: int = child.ask(work="")["by"]
    return number


def test_a_process_is_kept_and_is_of_its_own_name(children: Any) -> None:
    first, second = children.get("first", module="a"), children.get("second", module="b")
    orders = [child.ask(work="")["order"] for child in (first, second)]
    assert [order["module"] for order in orders] == ["a", "b"]
    assert by(children.get("first", module="a")) == by(first) != by(second)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ("fails", "one: first line second line"),
        ("dies", "one: its process ended without a word"),
        ("hangs", "one: no answer within 0.2 s"),
    ],
)
def test_a_process_that_ends_is_told_in_one_line_and_started_anew(
    children: Any, work: str, said: str
) -> None:
    child = children.get("one")
    before = by(child)
    with pytest.raises(CHILDREN.ChildError, match=rf"^{said}$"):
        child.ask(within_s=0.2 if work == "hangs" else 30, work=work)
    assert child.is_gone
    assert not psutil.pid_exists(before)
    assert by(children.get("one")) != before


def test_an_allocator_that_cannot_be_had_is_told_when_it_is_asked(children: Any) -> None:
    with pytest.raises(CHILDREN.ChildError, match=r"^broken: no allocator of this kind$"):
        children.get("broken", is_broken=True).ask(work="")


def test_all_are_asked_whatever_becomes_of_one(children: Any) -> None:
    orders = {"first": {"module": "a"}, "broken": {"is_broken": True}, "second": {"module": "b"}}
    answers, wrong = children.ask_all(orders, work="")
    assert {name: answer["order"]["module"] for name, answer in answers.items()} == {
        "first": "a",
        "second": "b",
    }
    assert wrong == {"broken": "broken: no allocator of this kind"}


def test_all_are_gone_when_they_are_closed() -> None:
    children = fakes()
    numbers = [by(children.get(name)) for name in ("first", "second")]
    children.close()
    assert not any(map(psutil.pid_exists, numbers))


def test_they_end_with_whoever_asks_them() -> None:
    program = """
import time
from tests.kernels.training.fake_child import fakes
children = fakes()
print(children.get("one").ask(work="")["by"], children._server.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as asking:
        assert asking.stdout is not None
        numbers = [int(word) for word in asking.stdout.readline().split()]
        asking.kill()
    assert len(numbers) == 2
    wait_for(lambda: not any(map(psutil.pid_exists, numbers)))


def ask_in_a_round(numbers: Connection) -> None:
    children = fakes()
    numbers.send([by(children.get("one")), children._server.pid])


def test_they_are_gone_at_the_end_of_a_round() -> None:
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe()
    process = context.Process(target=ask_in_a_round, args=(theirs,))
    process.start()
    assert ours.poll(DEADLINE_S)
    numbers = ours.recv()
    process.join()
    assert process.exitcode == 0
    assert len(numbers) == 2
    assert not any(map(psutil.pid_exists, numbers))


def test_without_pytorch_the_real_ones_say_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    children = CHILDREN.Children()
    with pytest.raises(CHILDREN.ChildError, match=r"^native: import of torch halted"):
        children.get("native", settings="", module=None).ask(drop=True)
    children.close()


def test_what_a_process_runs_is_part_of_a_result() -> None:
    from analysis.study.source import source_files

    names = {Path(file).name for file in source_files(STUDY, STUDY.variant("p5_dropin"))}
    files = {"child.py", "children.py", "works.py", "transformer.py", "allocators.py"}
    assert files | {"plug.h", "out_of_memory.h", "device_memory.h", "driver_source.h"} <= names
