"""Processes with an allocator each, and their answers to a cell, compared with PyTorch's."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from analysis import ROOT
from analysis.measure.cell import Skip
from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.conformance.binding import outcome
from tests.repository import STUDIES
from tests.waiting import wait_for

STUDY = STUDIES["training"]
WORKLOAD = load_python(STUDY, "workload")
CHILDREN = load_python(STUDY, "children")
NATIVE, OURS = "torch_caching", "p5_dropin"
MODULES = {OURS: SimpleNamespace(__file__=f"{OURS}.so"), NATIVE: load_python(STUDY, NATIVE)}
METRICS = dict.fromkeys(set(STUDY.metrics) - {"relative_speed"}, 1.0)
RIGHT = [1.5, 2.5]
pytestmark = pytest.mark.usefixtures("fake")


class Scripted:
    """Processes with a list of answers for each run of the work: values, values and times of steps,
    or an error. The first finds `free` bytes, each next one a byte less."""

    def __init__(self, native: list[Any], ours: list[Any], *, free: int = 200 * 2**30) -> None:
        self._answers = {NATIVE: iter(native), OURS: iter(ours)}
        self._free = free
        self.orders: dict[str, Any] = {}
        self.asked: list[tuple[str, int, bool]] = []

    def get(self, name: str, **order: Any) -> Any:
        return SimpleNamespace(ask=partial(self._answer, name))

    def ask_all(self, orders: dict[str, Any], **request: Any) -> Any:
        self.orders |= orders
        if "drop" in request:
            return {name: {"free": self._free - n} for n, name in enumerate(orders)}, {}
        answers, wrong = {}, {}
        for name in orders:
            try:
                answers[name] = self._answer(name)
            except CHILDREN.ChildError as error:
                wrong[name] = str(error)
        return answers, wrong

    def _answer(self, name: str, cpu: int = -1, counted: bool = False) -> Any:
        self.asked.append((name, cpu, counted))
        found = next(self._answers[name])
        if isinstance(found, str):
            raise CHILDREN.ChildError(found)
        values, steps = found if isinstance(found, tuple) else (found, [1.0])
        return {"values": values, "steps": steps, "metrics": METRICS | {"gpu_time": sum(steps)}}


def workload_of(children: Any, work: str = "decoding") -> Any:
    workload = WORKLOAD.Workload({}, np.random.default_rng(0))
    workload._children = children
    workload.prepare(Case({"work": work}, 0, "default"))
    return workload


def bound(children: Scripted, name: str = OURS, work: str = "decoding") -> Any:
    return workload_of(children, work).bind(STUDY.variant(name), MODULES[name])


def test_values_of_the_reference_are_right_and_all_metrics_are_reported() -> None:
    children = Scripted([RIGHT] * 9, [RIGHT] * 11)
    operation = bound(children)
    assert outcome(operation) is None
    samples = operation.own_samples(0, 1)
    assert set(samples) == set(STUDY.metrics)
    assert len(samples["host_time"]) == WORKLOAD.LOOPS["decoding"]
    assert [name for name, _, is_counted in children.asked if is_counted] == [OURS]
    native = {"settings": "expandable_segments:False", "module": None}
    ours = {"settings": None, "module": str(Path(f"{OURS}.so").resolve())}
    assert children.orders == {NATIVE: native, OURS: ours}
    graphs = bound(Scripted([[0.0]], [[0.0]] * 3), work="graphs_2")  # which are not counted
    assert outcome(graphs) is None
    assert not {"allocations", "relative_speed"} & set(graphs.own_samples(0, 1))


def test_each_step_counts_with_its_least_time_on_any_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7, 9})
    unused = [0.1, 0.1]
    native, ours = (
        [([1.0], steps) for steps in times]
        for times in (
            [unused, [9.0, 5.0], [4.0, 9.0], [9.0, 9.0]],
            [unused, unused, [4.0, 9.0], [9.0, 3.0], [2.0, 4.0], unused],
        )
    )
    children = Scripted(native, ours)
    operation = bound(children, work="training_large")
    assert outcome(operation) is None
    children.asked.clear()
    samples = operation.own_samples(0, 1)
    names, cpus, _ = zip(*children.asked, strict=True)
    assert names == (NATIVE, OURS, OURS, NATIVE, NATIVE, OURS, OURS)
    assert samples["relative_speed"] == [(4.0 + 5.0) / (2.0 + 3.0)]
    assert samples["gpu_time"] == [13.0, 12.0, 6.0]
    assert cpus[:6:2] == cpus[1:6:2] and len({*cpus[:6]}) == 3 and {*cpus} < {3, 5, 7, 9}


@pytest.mark.parametrize(
    ("name", "native", "ours", "said"),
    [
        (OURS, [RIGHT], [[1.5, 2.75]], "value 2: expected 2.5, got 2.75"),
        (OURS, [RIGHT], [RIGHT, [1.5]], "values: expected 2, got 1"),
        (OURS, [RIGHT], [RIGHT, "p5_dropin: out of luck"], "p5_dropin: out of luck"),
        (OURS, ["torch_caching: gone"], [RIGHT], "torch_caching: gone"),
        (NATIVE, [[1.0], [2.0]], [], "value 1: expected 1.0, got 2.0"),
    ],
)
def test_any_other_values_and_errors_are_faults_of_the_cell(
    name: str, native: list[Any], ours: list[Any], said: str
) -> None:
    assert outcome(bound(Scripted(native, ours), name)) == said


def test_a_value_that_turns_wrong_later_ends_the_round() -> None:
    operation = bound(Scripted([[1.0]] * 2, [[1.0], [1.0], [3.0]]))
    assert outcome(operation) is None
    with pytest.raises(RuntimeError, match=r"^decoding: value 1: expected 1\.0, got 3\.0$"):
        operation.own_samples(0, 1)


def test_a_gpu_with_too_little_memory_for_all_skips_the_case() -> None:
    cases = {case["work"] for variant in STUDY.variants for case in variant.cases}
    assert cases == set(WORKLOAD.WORKS)
    pairs = [(STUDY.variant(name), module) for name, module in MODULES.items()]
    _, room = WORKLOAD.WORKS["decoding"]
    workload_of(Scripted([[1.0]], [[1.0]], free=2 * room)).before_bind(pairs)
    said = rf"^decoding: too little GPU memory is free: {2 * room - 1} B for 2 processes that"
    with pytest.raises(Skip, match=said):
        workload_of(Scripted([[1.0]], [[1.0]], free=2 * room - 1)).before_bind(pairs)


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
from tests.kernels.training.test_workload import CHILDREN, Fake
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
