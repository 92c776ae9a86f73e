"""Calibration and held-out cells on a machine that is made up."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from analysis.base.errors import HotpathError
from analysis.measure.cell import Skip
from analysis.study import Case, Variant
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
    draw_jobs,
    judge,
    measure_jobs,
    pinned_ways,
)
from tests.kernels.transfers.machines import WAYS, loop
from tests.repository import STUDIES

WAYS_HERE = pinned_ways(STUDIES["transfers"])


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
        slower = 1 + 0.1 * (sum(map(ord, name)) % 7)
        return slower * WAYS.get(f"pinned_{method_of(name)}", loop)(size, count)

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
    known = calibrate(bench(), WAYS_HERE, "box")
    jobs = draw_jobs(11, WAYS_HERE, 60)
    (of_calibration, of_constants) = judge(
        measure_jobs(bench(noise=0.01), WAYS_HERE, jobs, {"calibration": known}, 11)
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


def test_a_wrong_output_ends_the_trial() -> None:
    with pytest.raises(HotpathError, match=f"{WAYS_HERE[0].name}, .*: byte 7"):
        calibrate(bench(wrong=WAYS_HERE[0].name), WAYS_HERE, "box")


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
    return HeldOut(
        seed=0,
        cell=cell,
        size=512,
        count=16,
        direction="h2d",
        host="pitched",
        device="packed",
        is_busy=0,
        variant=variant,
        measured_s=measured,
        by_results_s=predicted,
        by_calibration_s=math.nan,
        is_constants=is_constants,
    )


def test_verdicts_compare_with_the_fastest_way() -> None:
    rows = [row(0, "a", 1.0, 2.0, 0), row(0, "b", 1.5, 1.2, 1), row(1, "a", 3.0, 2.9, 1)]
    results, constants = judge([*rows, row(1, "c", 9.0, math.nan, 0)])
    assert results.losses == (1.5, 1.0)
    assert results.errors == (1.2 / 1.5, 2.9 / 3.0)
    assert results.share_of_losses(0.2) == results.share_of_errors(0.1) == 0.5
    assert constants.losses == (1.5, 1.0)


def test_the_metrics_of_a_run_are_those_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(0, "a", 1.0, 1.05, 0), row(0, "b", 1.5, 1.2, 1), row(1, "a", 3.0, 2.0, 1)]
    monkeypatch.setattr(held_out, "running_trials", lambda *_: None)
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


def test_a_way_that_fails_skips_the_judgement(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise HotpathError("pinned_loop: byte 7")

    monkeypatch.setattr(held_out, "running_trials", lambda *_: None)
    monkeypatch.setattr(held_out, "hold_out", fail)
    with pytest.raises(Skip, match="pinned_loop: byte 7"):
        object.__new__(held_out.Judged).samples(0)
