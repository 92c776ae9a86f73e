"""Disturbed rounds: their signs, their repetition and their marks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from analysis.base.gpu import Gpu
from analysis.measure import run as runs
from analysis.measure.conditions import Conditions
from analysis.measure.journal import Journal
from analysis.measure.plan import Plan, Target
from analysis.measure.run import disturbed, run_rounds
from analysis.results.disturbance import Watch, disturbances
from analysis.results.store.keys import RunFile
from analysis.study import Study
from tests.measure.conftest import QUIET
from tests.measure.studies import GRID, HERE, host, run, runs_at, samples_at, write_study

CORES = 16
CALM = Watch(asdict(QUIET), asdict(QUIET), seconds=10.0)


def after(**changed: float) -> Watch:
    return replace(CALM, after=asdict(QUIET) | changed)


@pytest.mark.parametrize(
    ("watch", "why"),
    [
        (after(busy_share=0.05), ""),
        (after(busy_share=0.1), "others kept 1.6 cores busy"),
        (after(steal_s=2.5), ""),
        (after(steal_s=4.2), "the hypervisor took 2.0% of the cores' time"),
        (replace(CALM, newcomers=(7, 3)), "processes [3, 7] came to the GPU"),
        (replace(CALM, throttle={"", "sw_power_cap"}), ""),
        (replace(CALM, throttle={"hw_slowdown"}), "the GPU lowered its clocks: hw_slowdown"),
        (
            Watch({"throttled_periods": 4}, {"throttled_periods": 7}, seconds=10.0),
            "the CPU quota stopped this process in 3 periods",
        ),
        (Watch({"throttled_periods": 4}, {"throttled_periods": 4}, seconds=10.0), ""),
        (Watch({}, {"throttled_periods": 4}, seconds=10.0), ""),
        (Watch({}, {}, seconds=10.0), ""),
    ],
)
def test_signs_of_a_disturbed_round(watch: Watch, why: str) -> None:
    assert disturbances([CALM, watch], CORES) == [[], [why] if why else []]


def disturb(monkeypatch: pytest.MonkeyPatch, looks: Iterator[Conditions]) -> None:
    for name in ("conditions", "recent_conditions"):
        monkeypatch.setattr(runs, name, lambda: next(looks))


def sequence(*busy: int) -> Iterator[Conditions]:
    """The host before and after each round: all cores busy in those rounds, counted as run."""
    number = 0
    while True:
        is_busy = number in busy or -1 in busy
        look = replace(QUIET, busy_share=1.0 if is_busy else 0.0)
        yield from (look, look)
        number += 1


def described(where: Target, study: Study) -> RunFile:
    (measured,) = runs_at(where, study)
    return measured.about


def test_a_disturbed_round_is_repeated_and_leaves_a_note(
    tmp_path: Path,
    where: Target,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = write_study(tmp_path / "noisy", {"name": "one"})
    disturb(monkeypatch, sequence(1))
    run(Plan(study, study.variants, GRID, where), tmp_path)
    found = described(where, study)
    (note,) = found.repeated
    assert note.round == 1 and "cores busy" in note.why[0]
    assert found.disturbed == []
    assert "noisy: round 2 is repeated: others kept" in capsys.readouterr().out
    # In the order of the journal the second round is the one that was measured last.
    started = {s.round: s.started_at for s in samples_at(where, study, "one")}
    assert sorted(started, key=lambda number: started[number]) == [0, 2, 1]


def test_persistently_disturbed_run_is_marked_and_ends(
    tmp_path: Path, where: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = write_study(tmp_path / "noisy", {"name": "one"})
    disturb(monkeypatch, sequence(-1))
    run(Plan(study, study.variants, GRID, where), tmp_path)
    found = described(where, study)
    assert len(found.repeated) == 1  # fewer than half of three
    assert [entry.round for entry in found.disturbed] == [0, 1, 2]
    assert {s.round for s in samples_at(where, study, "one")} == {0, 1, 2}


def test_new_processes_on_the_gpu_and_their_cost_are_known(
    tmp_path: Path, where: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids: list[int | None] = []
    join = BaseProcess.join

    def noted(process: BaseProcess, timeout: float | None = None) -> None:
        pids.append(process.pid)
        join(process, timeout)

    monkeypatch.setattr(BaseProcess, "join", noted)
    monkeypatch.setattr(Gpu, "other_processes", lambda self: [4, 5, *pids])
    joules = iter([100.0, 2000.0, 130.0, 2005.0])  # of both GPUs, before and after
    monkeypatch.setattr(Gpu, "energy_j", lambda self: next(joules))
    gpu = Gpu(None, "GPU", "", 0, "sm_90", "")
    monkeypatch.setattr(runs, "_telemetry", lambda *_: nullcontext())
    job_on_gpu = runs._job
    monkeypatch.setattr(runs, "_job", lambda *asked: replace(job_on_gpu(*asked), gpu_keys=()))
    study = write_study(tmp_path / "noisy", {"name": "one"})
    plan = Plan(study, study.variants, replace(GRID, rounds=1), where)
    run_rounds(plan, HERE, replace(host(tmp_path), gpus=[gpu, gpu], others=[4]))
    assert Journal(plan).records[0].energy_j == 35.0
    (note,) = disturbed(Journal(plan))
    assert (note.round, note.why) == (0, ["processes [5] came to the GPU"])
