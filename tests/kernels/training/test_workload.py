"""What a cell is told by its process: metrics, and whether values are those of PyTorch's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.errors import FieldError
from analysis.measure.cell import Skip
from analysis.modules import load_python
from analysis.study import Case
from tests.repository import STUDIES

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


class Scripted:
    """Processes whose values are lists, one for each question, or what they raise."""

    def __init__(self, **answers: list[Any]) -> None:
        self._answers = {name: iter(values) for name, values in answers.items()}
        self.orders: dict[str, Any] = {}
        self.counted: list[str] = []

    def get(self, name: str, **order: Any) -> Any:
        self.orders[name] = order
        return SimpleNamespace(ask=lambda work, counted: self._answer(name, counted))

    def _answer(self, name: str, counted: bool) -> Any:
        self.counted += [name] * counted
        values = next(self._answers[name])
        if isinstance(values, Exception):
            raise values
        return {"values": values, "metrics": METRICS}


def bound(children: Scripted, name: str = "p5_dropin", work: str = "decoding") -> Any:
    workload = WORKLOAD.Workload({}, np.random.default_rng(0))
    workload._children = children
    workload.prepare(Case({"work": work}, 0, "default"))
    return workload.bind(STUDY.variant(name), MODULES[name])


def checked(operation: Any) -> str | None:
    operation.poison()
    operation.launch(0)
    wrong: str | None = operation.check()
    return wrong


def test_values_like_the_references_are_right_and_all_metrics_are_told() -> None:
    children = Scripted(torch_caching=[[1.5, 2.5]], p5_dropin=[[1.5, 2.5]] * 3)
    operation = bound(children)
    assert checked(operation) is None
    samples = operation.own_samples(0, 1)
    assert set(samples) == set(STUDY.metrics)
    assert len(samples["host_time"]) == 2
    assert children.counted == ["p5_dropin"]
    assert children.orders["torch_caching"] == {
        "settings": "expandable_segments:False",
        "module": None,
    }
    assert children.orders["p5_dropin"]["settings"] is None
    assert children.orders["p5_dropin"]["module"].endswith("/p5_dropin.so")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.5, 2.5000000000000004], "value 2: expected 2.5, got 2.5000000000000004"),
        ([1.5], "values: expected 2, got 1"),
        (CHILDREN.ChildError("p5_dropin: out of luck"), "p5_dropin: out of luck"),
    ],
)
def test_any_other_values_and_errors_are_faults_of_the_cell(values: Any, said: str) -> None:
    children = Scripted(torch_caching=[[1.5, 2.5]], p5_dropin=[values])
    assert checked(bound(children)) == said


def test_without_the_reference_nothing_is_right() -> None:
    error = CHILDREN.ChildError("torch_caching: its process ended without a word")
    children = Scripted(torch_caching=[error], p5_dropin=[[1.0]])
    assert checked(bound(children)) == "torch_caching: its process ended without a word"


def test_nothing_done_is_nothing_right() -> None:
    operation = bound(Scripted())
    operation.poison()
    assert operation.check() == "never done"


def test_the_reference_is_held_against_itself() -> None:
    children = Scripted(torch_caching=[[1.0], [2.0]])
    assert checked(bound(children, "torch_caching")) == "value 1: expected 1.0, got 2.0"


def test_what_pytorch_does_itself_cannot_be_counted() -> None:
    children = Scripted(torch_caching=[[1.0]] * 3)
    operation = bound(children, "torch_caching")
    assert checked(operation) is None
    assert "allocation_share" not in operation.own_samples(0, 1)
    assert children.counted == []


def test_graphs_are_not_counted() -> None:
    children = Scripted(torch_caching=[[0.0]], p5_dropin=[[0.0]] * 2)
    operation = bound(children, work="graphs_2")
    assert checked(operation) is None
    assert "allocations" not in operation.own_samples(0, 1)


def test_a_value_that_turns_wrong_later_ends_the_round() -> None:
    operation = bound(Scripted(torch_caching=[[1.0]], p5_dropin=[[1.0], [3.0]]))
    assert checked(operation) is None
    with pytest.raises(RuntimeError, match=r"^decoding: value 1: expected 1\.0, got 3\.0$"):
        operation.own_samples(0, 1)


def test_a_gpu_with_too_little_memory_skips_the_cell() -> None:
    operation = bound(Scripted(torch_caching=[CHILDREN.Unable("decoding: too little")]))
    with pytest.raises(Skip, match=r"^decoding: too little$"):
        operation.launch(0)


def test_every_case_is_a_work_and_others_are_refused() -> None:
    cases = {case["work"] for variant in STUDY.variants for case in variant.cases}
    assert cases == set(WORKLOAD.WORKS)
    workload = WORKLOAD.Workload({}, np.random.default_rng(0))
    with pytest.raises(FieldError, match="work: expected one of"):
        workload.prepare(Case({"work": "unheard_of"}, 0, "default"))
