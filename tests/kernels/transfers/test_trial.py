"""Calibration and held-out cells on a machine that is made up."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np
import pytest

from analysis.base.errors import HotpathError
from analysis.measure import rig
from analysis.measure.cell import Skip
from analysis.study import Case, Variant
from kernels.common.moves import workload
from kernels.transfers import held_out, trial
from kernels.transfers.adviser import Job
from kernels.transfers.kinds import method_of
from kernels.transfers.measured import can_measure
from kernels.transfers.trial import (
    HELD_OUT_BYTES,
    Bench,
    HeldOut,
    by_constants,
    calibrate,
    calibrate_here,
    draw_jobs,
    hold_out,
    judge,
    measure_jobs,
    pinned_ways,
)
from tests.kernels.moves import fake_memory
from tests.kernels.stubbed import stubbed
from tests.kernels.transfers.machines import WAYS, loop
from tests.repository import STUDIES

HOST_METHODS: Final = ("2d", "loop", "batch", "list_loop", "list_batch", "list_packed_1")
WAYS_HERE = pinned_ways(STUDIES["transfers"])
ON_HOST: Final = {one.name for one in WAYS_HERE if method_of(one.name) in HOST_METHODS}


class MadeUp:
    """Binds variants whose times are known, off by `noise`; `wrong` has wrong output."""

    def __init__(self, noise: float = 0.02, wrong: str = "") -> None:
        self._noise, self._wrong = noise, wrong
        self._rng = random.Random(4)

    def __call__(self, variant: Variant, case: Case) -> Any:
        seconds = self.seconds(variant.name, case.number("size"), case.number("count"))
        return SimpleNamespace(
            launch=lambda: None,
            poison_and_launch=lambda: seconds,
            check=lambda: "byte 7" if variant.name == self._wrong else "",
            host_times=lambda count: itertools.islice(self._times(seconds), count),
        )

    def seconds(self, name: str, size: int, count: int) -> float:
        """A way for a list takes as long as the one for rows; others differ by some tenths."""
        method = method_of(name).removeprefix("list_")
        kind = "kernel" if method.startswith(("gather", "bulk")) else method.partition("_")[0]
        slower = 1 + 0.1 * (sum(map(ord, method)) % 7)
        return slower * WAYS.get(f"pinned_{kind}", loop)(size, count)

    def _times(self, seconds: float) -> Iterator[dict[str, float]]:
        while True:
            time = seconds * math.exp(self._rng.gauss(0, self._noise))
            yield {"host_time": time, "submit_time": time / 2}


def bench(**faults: Any) -> Bench:
    return Bench(cast(Any, MadeUp(**faults)))


@pytest.fixture(autouse=True)
def without_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "WARM_UP_S", 0.0)


def test_a_calibration_is_enough_for_the_advice() -> None:
    known = calibrate(bench(), WAYS_HERE, "box", 60)
    jobs = draw_jobs(11, WAYS_HERE, 60)
    (of_calibration, of_constants) = judge(
        measure_jobs(bench(noise=0.01), WAYS_HERE, jobs, {"calibration": known}, 11, 60)
    )
    assert of_calibration.source == "calibration"
    assert of_calibration.share_of_losses(0.05) >= 0.95
    assert of_calibration.share_of_losses(0.2) == 1
    assert of_calibration.share_of_errors(0.1) >= 0.9
    assert of_constants.source == "constants"


def test_the_budget_ends_a_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """After as many cells of one way as of another."""
    seconds = itertools.count()
    monkeypatch.setattr(trial, "time", SimpleNamespace(perf_counter=lambda: float(next(seconds))))
    known = calibrate(bench(), WAYS_HERE, "box", budget_s=50)
    cells = [len(way.costs["host_time"].misfits) for way in known.ways]
    assert 1 <= min(cells) <= max(cells) <= min(cells) + 1


def test_no_cell_begins_after_the_limit() -> None:
    jobs = draw_jobs(11, WAYS_HERE, 5)
    assert measure_jobs(bench(), WAYS_HERE, jobs, {}, 11, -1) == []


def test_a_way_with_wrong_output_is_left_out_and_reported() -> None:
    wrong = bench(wrong="pinned_2d")
    known = calibrate(wrong, WAYS_HERE, "box", 60)
    assert "pinned_2d" not in {way.variant for way in known.ways}
    with pytest.raises(HotpathError, match=r"^wrong output: pinned_2d: .*: byte 7$"):
        wrong.require_right()
    bench().require_right()


def test_held_out_jobs_are_on_no_grid_and_of_the_seed() -> None:
    jobs = draw_jobs(3, WAYS_HERE, 100)
    assert jobs == draw_jobs(3, WAYS_HERE, 100) != draw_jobs(4, WAYS_HERE, 100)
    for job in jobs:
        assert job.size not in {512, 1024, 4096, 16_384} and job.count not in {16, 256, 4096}
        assert job.payload_bytes <= HELD_OUT_BYTES
        assert sum(can_measure(variant, job) for variant in WAYS_HERE) > 1


@pytest.mark.parametrize(
    ("size", "count", "direction", "chosen"),
    [
        (28_672, 4096, "h2d", "pinned_batch"),
        (28_656, 16, "h2d", "pinned_gather"),
        (512, 15, "h2d", "pinned_batch"),
        (512, 4096, "d2h", "pinned_batch"),
    ],
)
def test_the_constants_choose_as_vllm_does(
    size: int, count: int, direction: str, chosen: str
) -> None:
    known = ["pinned_loop", "pinned_gather", "pinned_batch"]
    assert by_constants(Job(size, count, direction), known) == chosen
    assert by_constants(Job(size, count, direction), ["pinned_loop"]) == ""
    of_lists = [name.replace("_", "_list_", 1) for name in known]
    assert by_constants(Job(size, count, direction), of_lists) == chosen.replace("_", "_list_", 1)


def row(cell: int, variant: str, measured: float, predicted: float, is_constants: int) -> HeldOut:
    job = (512, 16, "h2d", "pitched", "packed", 0)
    return HeldOut(0, cell, *job, variant, measured, predicted, math.nan, is_constants)


def test_verdicts_compare_with_the_fastest_way() -> None:
    rows = [row(0, "a", 1.0, 2.0, 0), row(0, "b", 1.5, 1.2, 1), row(1, "a", 3.0, 2.9, 1)]
    results, constants = judge([*rows, row(1, "c", 9.0, math.nan, 0)])
    assert results.losses == (1.5, 1.0)
    assert results.errors == (1.2 / 1.5, 2.9 / 3.0)
    assert results.share_of_losses(0.2) == results.share_of_errors(0.1) == 0.5
    assert constants.losses == (1.5, 1.0)


def test_the_metrics_of_a_run_are_those_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(0, "a", 1.0, 1.05, 0), row(0, "b", 1.5, 1.2, 1), row(1, "a", 3.0, 2.0, 1)]
    monkeypatch.setattr(held_out, "running_trials", lambda *_: SimpleNamespace(bind=None))
    monkeypatch.setattr(held_out, "calibrate_here", lambda *_: None)
    monkeypatch.setattr(held_out, "hold_out", lambda *_: rows)
    found = object.__new__(held_out.Judged).samples(0)
    assert found == {
        "advised_loss": [1.0, 1.0],
        "advised_hits": [1.0],
        "advised_worst": [1.0],
        "advised_predicted": [0.5],
        "constants_loss": [1.5, 1.0],
        "constants_hits": [0.5],
        "constants_worst": [1.5],
    }
    assert set(found) <= set(STUDIES["transfers"].metrics)


def judged(monkeypatch: pytest.MonkeyPatch, error: Exception, faults: dict[str, str]) -> None:
    """A judgement whose calibration finds these wrong outputs, then ends with `error`."""

    def fail(here: Any, bench: trial.Bench) -> None:
        bench.faults.update(faults)
        raise error

    monkeypatch.setattr(held_out, "running_trials", lambda *_: SimpleNamespace(bind=None))
    monkeypatch.setattr(held_out, "calibrate_here", fail)
    object.__new__(held_out.Judged).samples(0)


def test_a_judgement_without_a_way_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Skip, match="no torch"):
        judged(monkeypatch, HotpathError("no torch"), {})


@pytest.mark.parametrize("error", [RuntimeError("CUDA: no memory"), KeyError("way")])
def test_an_unforeseen_error_of_a_judgement_is_no_skip(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(type(error)):
        judged(monkeypatch, error, {})


def test_a_wrong_output_in_a_judgement_is_no_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HotpathError, match="wrong output: pinned_loop: byte 7") as caught:
        judged(monkeypatch, HotpathError("no cell"), {"pinned_loop": "byte 7"})
    assert not isinstance(caught.value, Skip)


@pytest.mark.long  # the other tests calibrate and judge with made-up times
def test_a_trial_runs_on_the_workloads_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte is checked: the ways are those without a kernel, over a stub of CUDA."""
    fake_memory(monkeypatch)
    monkeypatch.setattr(workload, "flush", lambda _: None)
    monkeypatch.setattr(rig, "_wait_of", lambda *_: lambda: None)
    monkeypatch.setattr(rig, "load_module", lambda _, study, variant: stubbed(study, variant.name))
    monkeypatch.setattr(trial, "CALIBRATION_S", 1e6)
    monkeypatch.setattr(trial, "HELD_OUT_CELLS", 6)
    monkeypatch.setattr(trial, "HELD_OUT_BYTES", 2**21)
    monkeypatch.setattr(trial, "CALIBRATION_CELLS", trial.CALIBRATION_CELLS[:3])
    here = SimpleNamespace(
        study=STUDIES["transfers"],
        machine="box",
        unmet=lambda variant: None if variant.name in ON_HOST else "no GPU",
        bind=rig.Rig(STUDIES["transfers"], Path(), np.random.default_rng(0)).bind,
    )
    timer, trials = Bench(here.bind), cast(Any, here)
    rows = hold_out(trials, timer, 5, calibrate_here(trials, timer), 1e6)
    timer.require_right()
    assert {one.cell for one in rows} == set(range(6))
    assert {one.variant for one in rows} == ON_HOST
    assert all(one.measured_s > 0 and one.by_calibration_s > 0 for one in rows)
    assert {verdict.source for verdict in judge(rows)} == {"calibration", "constants"}
