"""Order of the engine's calls, as on the page about workloads."""

from __future__ import annotations

import re
from itertools import groupby
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from analysis import ROOT
from analysis.measure.rig import Rig
from analysis.measure.round import (
    DISCARDED_HOST_PASSES,
    WARM_UP_LAUNCHES,
    Bench,
    RoundJob,
)
from analysis.study import load_study
from analysis.toolchain.modules import load_python
from tests.measure.studies import GRID
from tests.synthetic import RUN, description, write_description

RECORDER = '''\
"""Records every call."""

from analysis.measure.cell import Operation, PythonLauncher

CALLS = []


class Workload:
    @classmethod
    def before_cuda(cls):
        CALLS.append("before_cuda")

    def __init__(self, constants, rng):
        CALLS.append("Workload")

    def prepare(self, case):
        CALLS.append("prepare")

    def before_bind(self, variants):
        CALLS.append("before_bind")

    def bind(self, variant, module):
        CALLS.append("bind")
        return Recorded()


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


def steps() -> dict[int, list[str]]:
    """The calls in each numbered row of the page's table."""
    page = (ROOT / "docs" / "workload.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.*?) \| [^|]* \|$", page, re.MULTILINE)
    return {int(number): re.findall(r"`(?:\w+\.)?(\w+)\(", calls) for number, calls in rows}


def test_the_engine_calls_a_workload_in_the_order_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.measure.round.WARM_UP_S", 0.001)
    data = description(
        "Recorded",
        {"host_time": ("s", "host time")},
        {"all": {"n": [1], "payload_bytes": 0}},
        [{"name": "only", "host_work": True, "clock": "python"}],
        headline={"n": 1},
    )
    (tmp_path / "only.py").touch()
    (tmp_path / "workload.py").write_text(RECORDER)
    study = load_study(write_description(tmp_path, data))
    calls = load_python(study, "workload").CALLS
    out = tmp_path / "round.csv"
    grid = replace(GRID, samples=2, sample_budget_s=1.0)
    job = RoundJob(study, study.variants, grid, RUN, 0, tmp_path, (), out)
    bench = Bench(job, [], Mock())
    (cell,) = bench.schedule()
    bench.measure(cell)

    order = steps()
    assert list(order) == list(range(14))
    on_gpu_only = 11
    samples = order.pop(13)
    assert order.pop(on_gpu_only) == ["reset", "launch"]
    order[9] *= WARM_UP_LAUNCHES
    once = [call for number in sorted(order) for call in order[number]]
    # Warming up launches as often as it can.
    warm_up = once.index("launch")
    seen = [call for call, _ in groupby(calls)]
    count = sum(name == "host_time" for name, _ in cell.values)
    assert calls[warm_up : warm_up + 2] == ["launch", "launch"]
    assert seen == [*once, *samples * (DISCARDED_HOST_PASSES + count)]
    assert count == 2

    calls.clear()
    rig = Rig(study, tmp_path, np.random.default_rng(0))
    bound = rig.bind(study.variants[0], study.variants[0].cases[0])
    bound.poison_and_launch()
    bound.check()
    assert calls == [call for number in (0, 1, 2, 3, 5, 6, 7, 8) for call in order[number]]
