"""Counting threads, built as for a measurement, except for the bindings."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.measure.cores import cores
from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.compiled import QUICK, module
from tests.repository import STUDIES

STUDY = STUDIES["counters"]
WORKLOAD = load_python(STUDY, "workload")


@pytest.mark.long  # the bindings are compiled for two tests alone
@pytest.mark.parametrize("name", STUDY.variant_names)
def test_no_increment_is_lost(name: str) -> None:
    counting = module(STUDY, STUDY.variant(name), of_bindings=QUICK)
    here = cores()
    for threads in (1, 2):
        chosen = [here[i % len(here)] for i in range(threads)]
        for increments in (1, 255, 256, 10_007):
            seconds, total = counting.count(chosen, increments, 3)
            assert total == threads * increments
            assert seconds > 0
    with pytest.raises(ValueError, match="cores: expected 1 to 256, got 0"):
        counting.count([], 1, 0)
    with pytest.raises(RuntimeError, match="pinning to core"):
        counting.count([100_000], 1, 0)


@pytest.mark.long
def test_the_work_between_increments_takes_time() -> None:
    variant = STUDY.variant("sharded_padded")
    workload = WORKLOAD.Workload({}, np.random.default_rng(1))
    times = {}
    for work in (0, 1000):
        workload.prepare(Case({"threads": 1, "work": work}, 0, "default"))
        operation = workload.bind(variant, module(STUDY, variant, of_bindings=QUICK))
        operation.poison()
        assert operation.check() is not None
        operation.launch(0)
        assert operation.check() is None
        times[work] = min(operation.own_samples(0, 5)["op_time"])
    assert times[1000] > 20 * times[0]


def test_a_thread_without_a_core_is_skipped() -> None:
    workload = WORKLOAD.Workload({}, np.random.default_rng(1))
    many = len(cores()) + 1
    with pytest.raises(Skip, match=f"{many} threads need {many} cores, here are {many - 1}"):
        workload.prepare(Case({"threads": many, "work": 0}, 0, "default"))
