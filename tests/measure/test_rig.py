"""The rig: each case is prepared once, before any variant is bound to it."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.measure.rig import Rig
from analysis.study import Study
from analysis.toolchain.modules import load_python
from tests.measure.studies import write_study

NOTES = '''\
"""Records its calls."""

from analysis.measure.cell import Operation, PythonLauncher, Skip

EVENTS = []


class Workload:
    def __init__(self, constants, rng):
        self.constants = dict(constants)
        EVENTS.append(f"workload {self.constants}")

    def prepare(self, case):
        EVENTS.append(f"prepare {case.id}")
        if case.id in REFUSED:
            raise Skip("not here")
        RETURNED

    def bind(self, variant, module):
        EVENTS.append(f"bind {variant.name} {module.__name__.rpartition('.')[2]}")
        return Noted()


class Inputs:
    def __init__(self, case):
        self.case = case

    def bind(self, variant, module):
        EVENTS.append(f"bind {variant.name} to {self.case.id}")
        return Noted()


class Noted(Operation):
    launcher = PythonLauncher(lambda stream: EVENTS.append("launch"))

    def poison(self):
        EVENTS.append("poison")

    def check(self):
        EVENTS.append("check")
        return WRONG

    def settle(self):
        EVENTS.append("settle")


REFUSED = ()
WRONG = None
'''


def rig_in(
    folder: Path, *variants: dict[str, Any], returned: str = "", **settings: object
) -> tuple[Study, Rig, list[str]]:
    """A study whose workload records its calls, its rig, and the record."""
    folder.mkdir()
    source = NOTES.replace("RETURNED", returned or "return None")
    (folder / "workload.py").write_text(source)
    study = write_study(folder, *variants)
    rig = Rig(study, folder, np.random.default_rng(0))
    workload = load_python(study, "workload")
    for name, value in settings.items():
        setattr(workload, name, value)
    return study, rig, workload.EVENTS


def test_workload_gets_the_variants_of_a_case_once(tmp_path: Path) -> None:
    study, _, events = rig_in(tmp_path / "a", {"name": "one"}, {"name": "two"}, {"name": "three"})
    workload = load_python(study, "workload").Workload
    workload.before_bind = lambda _, bound: events.append(
        "before " + " ".join(f"{variant.name} {module.__name__[-3:]}" for variant, module in bound)
    )
    one, two, three = study.variants
    first, second = one.cases
    variants = [one, replace(two, cases=(first,)), replace(three, constants={"width": 2})]
    rig = Rig(study, study.folder, np.random.default_rng(0), variants)
    for variant, case in ((one, first), (two, first), (one, second)):
        rig.bind(variant, case)
    assert events == [
        *("workload {}", "prepare n=1", "before one one two two", "bind one one", "bind two two"),
        *("prepare n=2", "before one one", "bind one one"),
    ]


def test_a_case_is_prepared_once_for_all_that_are_bound_to_it(tmp_path: Path) -> None:
    study, rig, events = rig_in(tmp_path / "a", {"name": "one"}, {"name": "two"})
    one, two = study.variants
    first, second = one.cases
    for variant, case in ((one, first), (two, first), (two, second), (one, first)):
        rig.bind(variant, case)
    assert events == [
        "workload {}",
        *("prepare n=1", "bind one one", "bind two two"),
        *("prepare n=2", "bind two two"),
        *("prepare n=1", "bind one one"),
    ]


def test_each_set_of_constants_has_a_workload_of_its_own(tmp_path: Path) -> None:
    study, rig, events = rig_in(tmp_path / "c", {"name": "one"}, {"name": "two"})
    one, two = study.variants
    for variant in 2 * (one, replace(two, constants={"width": 2})):
        rig.bind(variant, variant.cases[0])
    made = [event for event in events if event.startswith(("workload", "prepare"))]
    assert made == ["workload {}", "prepare n=1", "workload {'width': 2}", "prepare n=1"]


def test_rejected_case_does_not_count_as_prepared(tmp_path: Path) -> None:
    study, rig, events = rig_in(tmp_path / "d", {"name": "one"}, REFUSED=("n=2",))
    variant = study.variants[0]
    rig.bind(variant, variant.cases[0])
    for _ in range(2):
        with pytest.raises(Skip, match="not here"):
            rig.bind(variant, variant.cases[1])
    rig.bind(variant, variant.cases[0])
    prepared = [event for event in events if event.startswith("prepare")]
    assert prepared == ["prepare n=1", "prepare n=2", "prepare n=2", "prepare n=1"]


@pytest.mark.parametrize("wrong", ["", "byte 3: expected 1, got 165"])
def test_output_is_poisoned_before_the_checked_launch(tmp_path: Path, wrong: str) -> None:
    study, rig, events = rig_in(tmp_path / "e", {"name": "one"}, WRONG=wrong or None)
    bound = rig.bind(study.variants[0], study.variants[0].cases[0])
    events.clear()
    assert bound.poison_and_launch() >= 0
    assert bound.check() == wrong
    assert events == ["poison", "launch", "check", *([] if wrong else ["settle"])]


@pytest.mark.parametrize("returned", ["", "return Inputs(case)"])
def test_inputs_live_as_long_as_their_operations(tmp_path: Path, returned: str) -> None:
    study, rig, events = rig_in(tmp_path / "f", {"name": "one"}, returned=returned)
    for case in study.variants[0].cases[::-1]:
        bound = rig.bind(study.variants[0], case)
    to = ["to n=2", "to n=1"] if returned else ["one", "one"]
    assert [event.split(" ", 2)[2] for event in events if event.startswith("bind")] == to
    held: list[weakref.ref[Any]] = [
        weakref.ref(rig._workloads["workload", ()]),
        weakref.ref(rig._prepared["workload", ()][1]),
    ]
    del rig
    gc.collect()
    assert all(reference() is not None for reference in held)
    del bound
    gc.collect()
    assert all(reference() is None for reference in held)
