"""Runs of host code: all rounds, rounds that fail or are disturbed, and what is published."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from analysis.base import processes
from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu, GpuError
from analysis.measure import run as runs
from analysis.measure import telemetry
from analysis.measure.journal import Journal
from analysis.measure.places import Place
from analysis.measure.plan import pending
from analysis.measure.publish import publish
from analysis.measure.round import RoundJob
from analysis.measure.run import imported, run_rounds
from analysis.results.disturbance import disturbances
from analysis.results.store.keys import Look
from analysis.study.source import fingerprint
from tests.editing import replace_in
from tests.measure.studies import (
    GPU,
    QUIET,
    host,
    measure,
    only_run,
    plan_of,
    run,
    samples_at,
    write_study,
)


def test_a_run_measures_every_cell_of_every_round(tmp_path: Path, place: Place) -> None:
    study = write_study(
        tmp_path / "whole",
        {"name": "one"},
        {"name": "wrong", "after": "one"},
        {"name": "refuses"},
        {"name": "on_gpu", "needs": ["gpu"]},
    )
    plan = plan_of(study, place)
    lines = run(plan)
    assert not plan.journal.exists()
    assert pending(study, place, "default") == []

    one = samples_at(place, study, "one")
    assert Counter((s.case, s.metric, s.round, s.sample) for s in one) == Counter(
        [(f"n={n}", "host_time", r, i) for n in (1, 2) for r in range(3) for i in range(2)]
        + [(f"n={n}", "filled", r, 0) for n in (1, 2) for r in range(3)]
    )
    assert {(s.metric, s.unit) for s in one} == {("host_time", "s"), ("filled", "B")}
    assert {s.value for s in one if s.metric == "filled"} == {8.0, 16.0}
    assert all(s.value is not None and 0 < s.value < 0.05 for s in one if s.unit == "s")
    # A wrong output fails its cell in every round, with the difference; the other case passes.
    wrong = samples_at(place, study, "wrong")
    assert {(s.round, s.value, s.verified, s.reason) for s in wrong if s.status == "failed"} == {
        (number, None, 0, "byte 15: expected 1, got 165") for number in range(3)
    }
    assert {s.status for s in wrong if s.case == "n=1"} == {"ok"}
    refused = [s for s in samples_at(place, study, "refuses") if s.case == "n=2"]
    assert {(s.status, s.reason) for s in refused} == {("skipped", "too large for this machine")}
    skipped = samples_at(place, study, "on_gpu")
    assert [(s.case, s.round, s.status, s.reason) for s in skipped] == [
        (f"n={n}", 0, "skipped", "no GPU") for n in (1, 2)
    ]
    assert lines[:2] == [
        "whole/one: 18 samples",
        "whole/wrong: 9 samples; WRONG OUTPUT in 1 cases: n=2",
    ]
    assert lines[3] == "whole/on_gpu: skipped: no GPU"
    assert lines[-1] == "error: whole: wrong output of wrong; marked failed in the results"

    about = only_run(place, study).about
    assert about.variants["one"].source_sha256 == fingerprint(study, study.variant("one"))
    assert about.variants["on_gpu"].unmet == "no GPU"
    assert (about.rounds, about.grid, about.asked, about.begun) == (3, "default", [], one[0].run)
    assert about.start <= one[0].started_at <= about.end
    assert about.telemetry["one"] == "not captured: no GPU"
    assert len(about.conditions) == 4  # before every round, and after the last
    stages = about.stages_s
    assert stages and stages.start > 0 and 0 <= stages.recorded <= stages.timing


def test_a_study_that_cannot_run_here_is_rows_of_reasons(tmp_path: Path, place: Place) -> None:
    study = write_study(tmp_path / "gpu_only", {"name": "one", "needs": ["gpu"]})
    assert run(plan_of(study, place)) == ["gpu_only/one: skipped: no GPU"]
    assert only_run(place, study).about.rounds == 0
    assert pending(study, place, "default") == []
    # On a machine that has one now, the reason is outdated.
    assert pending(study, replace(place, gpus=[GPU]), "default") == [*study.variants]
    refusing = write_study(tmp_path / "refusing", {"name": "refuses"})
    replace_in(refusing.folder / "refuses.py", "size > 8", "True")
    assert run(plan_of(refusing, place))[0] == "refusing/refuses: 0 samples"
    assert {row.round for row in only_run(place, refusing).rows} == {0}


def test_progress_shares_the_budgets_among_cells_that_can_run(
    tmp_path: Path, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    study = write_study(tmp_path / "whole", {"name": "one"}, {"name": "two", "needs": ["torch"]})
    one, two = study.variants
    assert imported(replace(study, imports=("json",)), [one]) == {"json"}
    assert imported(study, [one, two]) == {"torch"}
    gpu = replace(two, needs=("gpu",))
    plan = plan_of(replace(study, budget_s=60, variants=(one, gpu)), place)
    assert (plan.budget_s, replace(plan, place=replace(place, gpus=[GPU])).budget_s) == (30, 60)
    run_rounds(Journal(replace(plan, variants=(one,))), host(), "study 1 of 2, ", later_s=215.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "whole: study 1 of 2, round 1 of 3, about 4 min left"
    assert lines[1].endswith("round 2 of 3, about 4 min left")


def fail_in_round(folder: Path, number: int, trouble: str) -> None:
    (folder / "trouble").write_text(f"{number} {trouble}")


@pytest.mark.parametrize(
    ("trouble", "reason", "stack"),
    [
        ("raise", "no such luck", ""),
        ("exit", "its process ended with code 7", ""),
        ("crash", f"its process ended with code {-signal.SIGSEGV}", "Segmentation fault"),
        ("hang", "took longer than 2 s (round_limit_s)", r"round\.py\", line \d+ in measure"),
    ],
)
def test_a_failed_round_names_its_cell_and_keeps_the_other_rounds(
    tmp_path: Path,
    place: Place,
    capfd: pytest.CaptureFixture[str],
    trouble: str,
    reason: str,
    stack: str,
) -> None:
    """The same command goes on. A process that hangs or crashes leaves its stacks."""
    study = write_study(tmp_path / trouble, {"name": "trouble"})
    fail_in_round(study.folder, 3, trouble)
    plan = plan_of(study, place)
    journal = Journal(plan)
    began = time.monotonic()
    with pytest.raises(HotpathError) as caught:
        run_rounds(journal, host(limit_s=2 if trouble == "hang" else 60))
    assert time.monotonic() - began < 55, "it waits for the process only"
    said = rf"{trouble}: round 3: cell [12]: trouble n=[12]: {re.escape(reason)}; finished rounds "
    assert re.match(said + "are kept, the same command", str(caught.value))
    error = capfd.readouterr().err
    assert re.search(stack, error)
    assert not stack or re.search(r"trouble\.py\", line \d+ in fill", error)
    kept = [journal.round_file(number) for number in range(3)]
    assert [path.exists() for path in kept] == [True, True, False]
    before = [path.read_bytes() for path in kept[:2]]
    assert not place.folder.exists()

    (study.folder / "trouble").unlink()
    resumed = measure(plan)
    assert [path.read_bytes() for path in kept[:2]] == before
    assert (study.folder / "rounds").stat().st_size == 4
    assert resumed.run == journal.run
    list(publish(resumed, host()))
    assert only_run(place, study).about.run == journal.run


def test_a_shipped_operator_that_ends_its_process_costs_its_cell_only(
    tmp_path: Path, place: Place
) -> None:
    study = write_study(tmp_path / "peers", {"name": "trouble"}, {"name": "one"})
    trouble, one = study.variants
    study = replace(study, variants=(replace(trouble, role="shipped"), one))
    fail_in_round(study.folder, 1, "crash")
    assert "WRONG OUTPUT in 1 cases" in run(plan_of(study, place))[0]
    failed = [row for row in only_run(place, study).rows if row.status == "failed"]
    assert {(row.variant, row.reason) for row in failed} == {
        ("trouble", f"its process ended with code {-signal.SIGSEGV}")
    }
    assert [row.round for row in failed] == [0, 1, 2]


def test_a_round_that_cannot_be_killed_is_reported(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = write_study(tmp_path / "hang", {"name": "trouble"})
    fail_in_round(study.folder, 1, "hang")
    running: list[BaseProcess] = []
    monkeypatch.setattr(processes, "KILLED_S", 0.1)
    monkeypatch.setattr(BaseProcess, "kill", lambda process: running.append(process))
    with pytest.raises(HotpathError, match=r"its process \d+ cannot be ended, the GPU may"):
        run_rounds(Journal(plan_of(study, place)), host(limit_s=0.5))
    (left,) = running
    # Else multiprocessing would wait for it at the end of the program.
    assert left not in multiprocessing.active_children()
    assert left.pid is not None
    os.kill(left.pid, signal.SIGKILL)


def test_a_round_with_a_value_that_no_result_may_have_is_not_kept(
    tmp_path: Path, place: Place
) -> None:
    study = write_study(tmp_path / "nan", {"name": "one"})
    replace_in(study.folder / "workload.py", "[len(self.out)]", "[float('nan')]")
    journal = Journal(plan_of(study, place))
    with pytest.raises(HotpathError, match=r"line 2: filled: expected 0 or numbers"):
        run_rounds(journal, host())
    assert journal.to_measure() == [0, 1, 2]


def test_telemetry_ends_with_its_run_or_with_its_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that hangs in the driver does not delay the end."""
    monkeypatch.setattr(telemetry, "END_S", 0.01)
    asked, answers = threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> None:
        asked.set()
        answers.wait()
        raise GpuError("lost")

    monkeypatch.setattr(Gpu, "readings", hang)
    with telemetry.recording([GPU], tmp_path / "rows"):
        assert asked.wait(60)
        (thread,) = (each for each in threading.enumerate() if "(record)" in each.name)
    assert thread.is_alive()
    answers.set()
    thread.join(60)
    assert not thread.is_alive()
    monkeypatch.setattr(Gpu, "readings", Mock(side_effect=GpuError("lost")))
    with telemetry.recording([GPU], tmp_path / "rows"):
        pass
    assert (tmp_path / "rows").read_text() == ""


def changed(**values: float) -> Look:
    return QUIET.model_copy(update=values)


@pytest.mark.parametrize(
    ("after", "others", "why"),
    [
        (changed(busy_share=0.05), {}, []),
        (changed(busy_share=0.1), {}, ["others kept 1.6 cores busy"]),
        (changed(steal_s=2.5), {}, []),
        (changed(steal_s=4.2), {}, ["the hypervisor took 2.0% of the cores' time"]),
        (changed(throttled_periods=4), {}, []),  # of an unknown number before
        (QUIET, {"newcomers": (7, 3)}, ["processes [3, 7] came to the GPU"]),
        (QUIET, {"throttle": {"", "sw_power_cap"}}, []),
        (QUIET, {"throttle": {"hw_slowdown"}}, ["the GPU lowered its clocks: hw_slowdown"]),
    ],
)
def test_signs_of_a_disturbed_round(after: Look, others: dict[str, Any], why: list[str]) -> None:
    assert [*disturbances(QUIET, after, 10.0, 16, **others)] == why
    before = changed(throttled_periods=4)
    quota = ["the CPU quota stopped this process in 3 periods"]
    assert [*disturbances(before, changed(throttled_periods=7), 10.0, 16)] == quota


@pytest.mark.parametrize(
    ("busy", "repeated", "marked"), [([1], [1], [2]), (range(9), [0], [0, 1, 2])]
)
def test_fewer_than_half_of_the_rounds_are_repeated_if_disturbed(
    tmp_path: Path,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    busy: Sequence[int],
    repeated: list[int],
    marked: list[int],
) -> None:
    """A busy host between two rounds disturbs both."""
    looks = iter(
        [QUIET, *(QUIET.model_copy(update={"busy_share": float(n in busy)}) for n in range(9))]
    )
    monkeypatch.setattr(runs, "conditions", lambda: next(looks))
    monkeypatch.setattr("psutil.cpu_count", lambda: 8)
    study = write_study(tmp_path / "noisy", {"name": "one"})
    run(plan_of(study, place))
    about = only_run(place, study).about
    assert [entry.round for entry in about.repeated] == repeated
    assert "others kept 8.0 cores busy" in about.repeated[0].why
    assert [entry.round for entry in about.disturbed] == marked
    started = {s.round: s.started_at for s in samples_at(place, study, "one")}
    assert sorted(started, key=lambda number: started[number])[-1] == repeated[0]


def test_new_processes_on_the_gpu_and_their_cost_are_known(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
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
    monkeypatch.setattr(runs, "recording", lambda *_: nullcontext())
    job_on_gpu = RoundJob
    monkeypatch.setattr(runs, "RoundJob", lambda **asked: job_on_gpu(**{**asked, "gpu_keys": ()}))
    study = write_study(tmp_path / "noisy", {"name": "one"})
    journal = Journal(plan_of(study, replace(place, gpus=[GPU, GPU]), rounds=1))
    monkeypatch.setattr(Place, "in_use", lambda self, variants: (GPU, GPU))
    run_rounds(journal, host(others=[4]))
    record = journal.records[0]
    assert (record.energy_j, record.why) == (35.0, ["processes [5] came to the GPU"])
