"""The engine's calls of a workload: their order, as on the page, and how long inputs live."""

from __future__ import annotations

import gc
import re
import weakref
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from analysis import ROOT
from analysis.measure.cell import Skip
from analysis.measure.rig import Rig
from analysis.measure.round import DISCARDED_HOST_PASSES, WARM_UP_LAUNCHES, Bench, RoundJob
from analysis.study import Study
from analysis.toolchain.modules import load_python
from tests.measure.studies import GRID, write_study
from tests.synthetic import RUN

RECORDER = '''\
"""Records every call, and with what."""

from analysis.measure.cell import Operation, PythonLauncher, Skip

CALLS = []
REFUSED = []


class Inputs:
    def __init__(self, case):
        self.case = case

    def before_bind(self, variants):
        CALLS.append("before_bind " + " ".join(variant.name for variant, _ in variants))

    def bind(self, variant, module):
        CALLS.append(f"bind {variant.name} {module.__name__.rpartition('.')[2]}")
        return Recorded()


class Workload(Inputs):
    @classmethod
    def before_cuda(cls):
        CALLS.append("before_cuda")

    def __init__(self, constants, rng):
        CALLS.append(f"Workload {dict(constants)}")

    def prepare(self, case):
        CALLS.append(f"prepare {case.id}")
        if case.id in REFUSED:
            raise Skip("not here")
        return MADE


class Recorded(Operation):
    launcher = PythonLauncher(lambda stream: CALLS.append("launch"))

    def poison(self):
        CALLS.append("poison")

    def check(self):
        CALLS.append("check")

    def own_samples(self, stream, count):
        CALLS.append("own_samples")
        return {}

    def reset(self, stream):
        CALLS.append("reset")

    def settle(self):
        CALLS.append("settle")
'''


def recorded(folder: Path, *names: str, made: str = "None") -> tuple[Study, list[str]]:
    """A study whose workload records its calls, and the record; `made` is what it prepares."""
    folder.mkdir()
    (folder / "workload.py").write_text(RECORDER.replace("MADE", made))
    study = write_study(folder, *({"name": name, "host_work": True} for name in names))
    return study, load_python(study, "workload").CALLS


def rig_of(study: Study) -> Rig:
    return Rig(study, study.folder, np.random.default_rng(0), study.variants)


def test_the_engine_calls_a_workload_in_the_order_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.measure.round.WARM_UP_S", 0.001)
    study, calls = recorded(tmp_path / "a", "only")
    out = tmp_path / "round.csv"
    job = RoundJob(study, study.variants, GRID, RUN, 0, tmp_path, (), out)
    bench = Bench(job, [], Mock())
    cell, *_ = bench.schedule()
    bench.measure(cell)
    made = [call.split()[0] for call in calls]

    # The calls in each numbered row of the page's table.
    page = (ROOT / "docs" / "workload.md").read_text()
    found = re.findall(r"^\| (\d+) \| (.*?) \| [^|]* \|$", page, re.MULTILINE)
    order = {int(number): re.findall(r"`(?:\w+\.)?(\w+)\(", calls) for number, calls in found}
    assert list(order) == list(range(14))
    on_gpu_only = 11
    samples = order.pop(13)
    assert order.pop(on_gpu_only) == ["reset", "launch"]
    order[9] *= WARM_UP_LAUNCHES
    once = [call for number in sorted(order) for call in order[number]]
    # Warming up launches as often as it can.
    warm_up = once.index("launch")
    count = sum(name == "host_time" for name, _ in cell.values)
    assert made[warm_up : warm_up + 2] == ["launch", "launch"]
    assert [call for call, _ in groupby(made)] == [
        *once,
        *samples * (DISCARDED_HOST_PASSES + count),
    ]
    assert count == GRID.samples

    calls.clear()
    bound = rig_of(study).bind(study.variants[0], study.variants[0].cases[0])
    bound.poison_and_launch()
    bound.check()
    expected = [call for number in (0, 1, 2, 3, 5, 6, 7, 8) for call in order[number]]
    assert [call.split()[0] for call in calls] == expected


def test_a_case_is_prepared_once_for_all_variants_of_one_set_of_constants(tmp_path: Path) -> None:
    """One that the workload rejects does not count as prepared."""
    study, calls = recorded(tmp_path / "a", "one", "two")
    rig = rig_of(study)
    one, two = study.variants
    first, second = one.cases
    for variant, case in ((one, first), (two, first), (two, second), (one, first)):
        rig.bind(variant, case)
    assert calls[1:] == [
        *("Workload {}", "prepare n=1", "before_bind one two", "bind one one", "bind two two"),
        *("prepare n=2", "before_bind one two", "bind two two"),
        *("prepare n=1", "before_bind one two", "bind one one"),
    ]
    calls.clear()
    other = replace(two, constants={"width": 2})
    for variant in (one, other, one, other):
        rig.bind(variant, first)
    kinds = [call for call in calls if call.startswith(("Workload", "prepare", "before"))]
    assert kinds == ["Workload {'width': 2}", "prepare n=1", "before_bind "]
    calls.clear()
    load_python(study, "workload").REFUSED.append("n=2")
    for _ in range(2):
        with pytest.raises(Skip, match="not here"):
            rig.bind(one, second)
    rig.bind(one, first)
    assert [call for call in calls if call.startswith("prepare")] == [
        *("prepare n=2", "prepare n=2", "prepare n=1"),
    ]


@pytest.mark.parametrize("made", ["None", "Inputs(case)"])
def test_inputs_live_as_long_as_their_operations(tmp_path: Path, made: str) -> None:
    study, _ = recorded(tmp_path / "a", "one", made=made)
    rig = rig_of(study)
    for case in study.variants[0].cases:
        bound = rig.bind(study.variants[0], case)
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
