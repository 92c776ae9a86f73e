"""The answers of a process to a cell: metrics, and the comparison of values with PyTorch's."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.measure.cell import Skip
from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES
from tests.waiting import DEADLINE_S

STUDY = STUDIES["training"]
WORKLOAD = load_python(STUDY, "workload")
CHILDREN = load_python(STUDY, "children")
MODULES = {
    "p5_dropin": SimpleNamespace(__file__="p5_dropin.so"),
    "torch_caching": load_python(STUDY, "torch_caching"),
}
TIMES = ("host_time", "submit_time", "gpu_time", "allocation_time")
OTHERS = ("allocation_share", "allocations", "driver_calls", "reserved", "active")
METRICS = dict.fromkeys((*TIMES, *OTHERS), 1.0)


ROOM = 200 * 2**30


class Scripted:
    """Processes whose values are lists, one for each time that they do the work, or what they
    raise. The first finds `free` bytes, each next one a byte less. `steps` are times by name."""

    steps: ClassVar[dict[str, Iterator[list[float]]]] = {}

    def __init__(self, *, free: int = ROOM, **answers: list[Any]) -> None:
        self._answers = {name: iter(values) for name, values in answers.items()}
        self._free = free
        self.orders: dict[str, Any] = {}
        self.asked: list[str] = []
        self.cpus: list[int] = []
        self.counted: list[str] = []
        self.begun: list[list[str]] = []

    def get(self, name: str, **order: Any) -> Any:
        return SimpleNamespace(ask=partial(self._answer, name))

    def ask_all(self, orders: dict[str, Any], **request: Any) -> Any:
        self.orders |= orders
        if "drop" in request:
            return {name: {"free": self._free - n} for n, name in enumerate(orders)}, {}
        self.begun += [list(orders)] if orders else []
        answers, wrong = {}, {}
        for name in orders:
            try:
                answers[name] = self._answer(name)
            except CHILDREN.ChildError as error:
                wrong[name] = str(error)
        return answers, wrong

    def _answer(self, name: str, cpu: int = -1, counted: bool = False) -> Any:
        self.asked.append(name)
        self.cpus.append(cpu)
        self.counted += [name] * counted
        values = next(self._answers[name])
        if isinstance(values, Exception):
            raise values
        steps = next(self.steps[name]) if name in self.steps else [1.0]
        return {"values": values, "steps": steps, "metrics": METRICS | {"gpu_time": sum(steps)}}


def workload_of(children: Any, work: str = "decoding") -> Any:
    workload = WORKLOAD.Workload({}, np.random.default_rng(0))
    workload._children = children
    workload.prepare(Case({"work": work}, 0, "default"))
    return workload


def bound(children: Scripted, name: str = "p5_dropin", work: str = "decoding") -> Any:
    return workload_of(children, work).bind(STUDY.variant(name), MODULES[name])


def checked(operation: Any) -> str | None:
    operation.poison()
    operation.launch(0)
    wrong: str | None = operation.check()
    return wrong


def test_values_like_the_references_are_right_and_all_metrics_are_told() -> None:
    children = Scripted(torch_caching=[[1.5, 2.5]] * 9, p5_dropin=[[1.5, 2.5]] * 11)
    operation = bound(children)
    assert checked(operation) is None
    samples = operation.own_samples(0, 1)
    assert set(samples) == set(STUDY.metrics)
    assert len(samples["host_time"]) == WORKLOAD.LOOPS["decoding"]
    assert children.counted == ["p5_dropin"]
    assert children.orders["torch_caching"] == {
        "settings": "expandable_segments:False",
        "module": None,
    }
    assert children.orders["p5_dropin"]["settings"] is None
    assert children.orders["p5_dropin"]["module"].endswith("/p5_dropin.so")


def test_each_step_counts_with_its_least_time_over_all_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unused = [0.1, 0.1]
    steps = {
        "torch_caching": iter([unused, [9.0, 5.0], [4.0, 9.0], [9.0, 9.0]]),
        "p5_dropin": iter([unused, unused, [4.0, 9.0], [9.0, 3.0], [2.0, 4.0], unused]),
    }
    monkeypatch.setattr(Scripted, "steps", steps)
    children = Scripted(torch_caching=[[1.0]] * 4, p5_dropin=[[1.0]] * 6)
    operation = bound(children, work="training_large")
    assert checked(operation) is None
    before = len(children.asked)
    samples = operation.own_samples(0, 1)
    native, variant = "torch_caching", "p5_dropin"
    assert children.asked[before:] == [native, variant, variant, native, native, variant, variant]
    assert samples["relative_speed"] == [(4.0 + 5.0) / (2.0 + 3.0)]
    assert samples["gpu_time"] == [13.0, 12.0, 6.0]


def test_each_turn_is_on_another_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7, 9})
    children = Scripted(torch_caching=[[1.0]] * 4, p5_dropin=[[1.0]] * 6)
    operation = bound(children, work="training_large")
    assert checked(operation) is None
    before = len(children.asked)
    operation.own_samples(0, 1)
    turns = children.cpus[before : before + 6]
    assert turns[::2] == turns[1::2]
    assert len(set(turns)) == 3
    assert set(turns) < {3, 5, 7, 9}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.5, 2.5000000000000004], "value 2: expected 2.5, got 2.5000000000000004"),
        ([1.5], "values: expected 2, got 1"),
        (CHILDREN.ChildError("p5_dropin: out of luck"), "p5_dropin: out of luck"),
    ],
)
def test_any_other_values_and_errors_are_faults_of_the_cell(values: Any, said: str) -> None:
    right = [1.5, 2.5]
    for answers in ([values], [right, values]):  # as it begins, or later
        children = Scripted(torch_caching=[right], p5_dropin=answers)
        assert checked(bound(children)) == said


def test_a_process_that_has_ended_is_not_asked_again() -> None:
    gone, other = (
        CHILDREN.ChildError(f"p5_dropin: {why}") for why in ("gone", "no work was begun")
    )
    operation = bound(Scripted(torch_caching=[[1.0]], p5_dropin=[[1.0], gone, other]))
    operation.launch(0)
    assert checked(operation) == "p5_dropin: gone"


def test_a_reference_that_has_ended_is_told_to_all_that_come_after() -> None:
    gone = CHILDREN.ChildError("torch_caching: gone")
    children = Scripted(torch_caching=[[1.0], gone, [1.0]], p5_dropin=[[1.0]] * 2)
    workload = workload_of(children)
    operation = workload.bind(STUDY.variant("p5_dropin"), MODULES["p5_dropin"])
    assert checked(operation) is None
    with pytest.raises(RuntimeError, match=r"^torch_caching: gone$"):
        operation.own_samples(0, 1)
    again = workload.bind(STUDY.variant("torch_caching"), MODULES["torch_caching"])
    assert checked(again) == "torch_caching: gone"


def test_without_the_reference_nothing_is_right() -> None:
    error = CHILDREN.ChildError("torch_caching: its process ended without a word")
    children = Scripted(torch_caching=[error], p5_dropin=[[1.0]])
    assert checked(bound(children)) == "torch_caching: its process ended without a word"


def test_nothing_done_is_nothing_right() -> None:
    operation = bound(Scripted(torch_caching=[[1.0]], p5_dropin=[[1.0]]))
    operation.poison()
    assert operation.check() == "never done"


def test_the_reference_is_held_against_itself() -> None:
    children = Scripted(torch_caching=[[1.0], [2.0]])
    assert checked(bound(children, "torch_caching")) == "value 1: expected 1.0, got 2.0"


def test_what_pytorch_does_itself_cannot_be_counted() -> None:
    children = Scripted(torch_caching=[[1.0]] * 18)
    operation = bound(children, "torch_caching")
    assert checked(operation) is None
    assert "allocation_share" not in operation.own_samples(0, 1)
    assert children.counted == []


def test_graphs_are_not_counted() -> None:
    children = Scripted(torch_caching=[[0.0]], p5_dropin=[[0.0]] * 3)
    operation = bound(children, work="graphs_2")
    assert checked(operation) is None
    samples = operation.own_samples(0, 1)
    assert "allocations" not in samples
    assert "relative_speed" not in samples
    assert len(samples["host_time"]) == 2


def test_a_value_that_turns_wrong_later_ends_the_round() -> None:
    children = Scripted(torch_caching=[[1.0]] * 2, p5_dropin=[[1.0], [1.0], [3.0]])
    operation = bound(children)
    assert checked(operation) is None
    with pytest.raises(RuntimeError, match=r"^decoding: value 1: expected 1\.0, got 3\.0$"):
        operation.own_samples(0, 1)


def test_a_gpu_with_too_little_memory_for_all_skips_the_case() -> None:
    pairs = [(STUDY.variant(name), module) for name, module in MODULES.items()]
    _, room = WORKLOAD.WORKS["decoding"]
    right = {"torch_caching": [[1.0]], "p5_dropin": [[1.0]]}
    workload_of(Scripted(free=2 * room, **right)).before_bind(pairs)
    said = rf"^decoding: too little GPU memory is free: {2 * room - 1} B for 2 processes that"
    with pytest.raises(Skip, match=said):
        workload_of(Scripted(free=2 * room - 1, **right)).before_bind(pairs)


def test_who_has_begun_does_not_begin_again_before_the_next_case() -> None:
    children = Scripted(torch_caching=[[1.0]] * 2, p5_dropin=[[1.0]] * 2)
    workload = workload_of(children)
    variant, module = STUDY.variant("p5_dropin"), MODULES["p5_dropin"]
    workload.before_bind([(variant, module)])
    for _ in range(2):
        workload.bind(variant, module)
    workload.prepare(Case({"work": "graphs_2"}, 0, "default"))
    workload.bind(variant, module)
    assert children.begun == [["torch_caching", "p5_dropin"]] * 2


class Noting:
    """Begins when all have been asked to, and notes the start and end of each action."""

    def __init__(self, notes: Path, all_begin: Barrier) -> None:
        self._notes = notes
        self._all_begin = all_begin

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        began = time.monotonic()
        if "begin" in request:
            self._all_begin.wait(DEADLINE_S)
        time.sleep(0.01)
        with self._notes.open("a") as notes:
            notes.write(f"{next(iter(request))} {began} {time.monotonic()}\n")
        return {"free": ROOM, "values": [1.0], "steps": [1.0], "metrics": METRICS}


def test_all_begin_at_the_same_time_and_then_each_is_asked_alone(tmp_path: Path) -> None:
    notes, all_begin = tmp_path / "notes", get_context("fork").Barrier(len(STUDY.variants))
    children = CHILDREN.Children(lambda _: Noting(notes, all_begin))
    workload = workload_of(children)
    native = SimpleNamespace(SETTINGS="")
    pairs = [(variant, MODULES.get(variant.name, native)) for variant in STUDY.variants]
    workload.before_bind(pairs)
    for variant, module in pairs:
        operation = workload.bind(variant, module)
        assert checked(operation) is None
        operation.own_samples(0, 1)
    children.close()

    spans: dict[str, list[tuple[float, float]]] = {}
    for line in notes.read_text().splitlines():
        what, began, ended = line.split()
        spans.setdefault(what, []).append((float(began), float(ended)))
    dropped, first, asked = (sorted(spans[what]) for what in ("drop", "begin", "counted"))
    assert len(dropped) == len(first) == len(pairs)
    counted = 1  # p5_dropin alone is a module here
    assert len(asked) == (1 + 2 * WORKLOAD.LOOPS["decoding"]) * len(pairs) + counted
    assert max(ended for _, ended in dropped) < first[0][0]
    assert max(ended for _, ended in first) < asked[0][0]
    assert all(ended < began for (_, ended), (began, _) in pairwise(asked))


def test_every_case_is_a_work_and_others_are_refused() -> None:
    cases = {case["work"] for variant in STUDY.variants for case in variant.cases}
    assert cases == set(WORKLOAD.WORKS)
    workload = WORKLOAD.Workload({}, np.random.default_rng(0))
    with pytest.raises(FieldError, match="work: expected one of"):
        workload.prepare(Case({"work": "unheard_of"}, 0, "default"))
