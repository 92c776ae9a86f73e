"""Runs of host code: all rounds, failed rounds, and the rounds after them."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from analysis.base import processes
from analysis.base.errors import HotpathError
from analysis.measure import publish as publishing
from analysis.measure import run as runs
from analysis.measure import telemetry
from analysis.measure.journal import Journal
from analysis.measure.plan import Plan, Target, pending
from analysis.measure.publish import publish
from analysis.measure.run import Host, imported, run_rounds
from analysis.measure.telemetry import PERIOD_S
from analysis.results.store.keys import UNKNOWN_HOST, start_of
from analysis.results.store.samples import read_rows
from analysis.study.source import fingerprint
from tests.measure.conftest import QUIET
from tests.measure.studies import (
    GRID,
    HERE,
    WITH_GPU,
    host,
    run,
    runs_at,
    samples_at,
    write_study,
)
from tests.synthetic import host_of
from tests.waiting import wait_for


def test_imports_of_rounds_happen_once_before(tmp_path: Path) -> None:
    study = write_study(tmp_path / "whole", {"name": "one"}, {"name": "two", "needs": ["torch"]})
    one, two = study.variants
    assert imported(study, [one]) == []
    assert imported(study, [one, two]) == ["torch"]
    assert imported(replace(study, imports=("json",)), [one]) == ["json"]


def test_a_run_measures_every_cell_of_every_round(tmp_path: Path, where: Target) -> None:
    study = write_study(
        tmp_path / "whole",
        {"name": "one"},
        {"name": "wrong", "after": "one"},
        {"name": "on_gpu", "needs": ["gpu"]},
    )
    plan = Plan(study, study.variants, GRID, where)
    lines = run(plan, tmp_path)

    one = samples_at(where, study, "one")
    assert Counter((s.case, s.metric, s.round, s.sample) for s in one) == Counter(
        [(f"n={n}", "host_time", r, i) for n in (1, 2) for r in range(3) for i in range(2)]
        + [(f"n={n}", "filled", r, 0) for n in (1, 2) for r in range(3)]
    )
    assert {(s.study, s.variant, s.status, s.verified, s.reason) for s in one} == {
        ("whole", "one", "ok", 1, "")
    }
    assert {(s.metric, s.unit) for s in one} == {("host_time", "s"), ("filled", "B")}
    assert {s.value for s in one if s.metric == "filled"} == {8.0, 16.0}
    assert all(s.value is not None and 0 < s.value < 0.05 for s in one if s.unit == "s")
    started = {s.round: s.started_at for s in one}
    assert started[0] < started[1] < started[2]
    assert len({s.run for s in one}) == 1

    # Wrong output: the cell fails in every round, with the difference; its other case passes.
    wrong = samples_at(where, study, "wrong")
    failed = [s for s in wrong if s.case == "n=2"]
    assert [(s.status, s.value, s.verified, s.round) for s in failed] == [
        ("failed", None, 0, number) for number in range(3)
    ]
    assert {s.reason for s in failed} == {"byte 15: expected 1, got 165"}
    assert {s.status for s in wrong if s.case == "n=1"} == {"ok"}

    skipped = samples_at(where, study, "on_gpu")
    assert [(s.case, s.status, s.reason, s.value) for s in skipped] == [
        ("n=1", "skipped", "no GPU", None),
        ("n=2", "skipped", "no GPU", None),
    ]
    assert lines.pop() == "error: whole: wrong output of wrong; marked failed in the results"
    assert re.fullmatch(r"whole: measured for \d+ s, budget 1 s", lines.pop())
    assert lines == [
        "whole/one: 18 samples",
        "whole/wrong: 9 samples; WRONG OUTPUT in 1 cases: n=2",
        "whole/on_gpu: skipped: no GPU",
    ]

    (measured,) = runs_at(where, study)
    about = measured.about
    assert about.variants["one"].source_sha256 == fingerprint(study, study.variant("one"))
    assert list(about.variants) == ["one", "wrong", "on_gpu"]
    assert about.variants["on_gpu"].unmet == "no GPU"
    assert (about.rounds, about.grid, about.begun) == (3, "default", one[0].run)
    assert about.start <= one[0].started_at <= about.end
    assert about.host.gpus == []
    assert about.telemetry["one"] == "not captured: no GPU"
    assert not plan.journal.exists()
    assert pending(study, where, "default", HERE) == []


def test_a_machine_is_described_with_all_its_gpus_whatever_a_study_uses(
    tmp_path: Path, where: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = {"gpu": "GPU", "host": UNKNOWN_HOST}
    monkeypatch.setattr(
        publishing, "describe", lambda gpus: host_of({**described, "gpus": len(gpus)})
    )
    study = write_study(tmp_path / "one_gpu", {"name": "one"})
    plan = Plan(study, study.variants, GRID, where)
    run_rounds(plan, HERE, host(tmp_path))
    two = replace(WITH_GPU, gpus=[*WITH_GPU.gpus] * 2)
    assert list(publish(plan, two, host(tmp_path)))
    (measured,) = runs_at(where, study)
    assert len(measured.about.host.gpus) == 2


def test_a_study_that_cannot_run_here_is_rows_of_reasons(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "gpu_only", {"name": "one", "needs": ["gpu"]})
    assert run(Plan(study, study.variants, GRID, where), tmp_path) == [
        "gpu_only/one: skipped: no GPU"
    ]
    (measured,) = runs_at(where, study)
    assert measured.about.rounds == 0
    assert pending(study, where, "default", HERE) == []
    # On a machine that has one now, the reason is outdated.
    assert pending(study, where, "default", WITH_GPU) == list(study.variants)


class Impatient:
    """A host that waits for the third round only until it hangs."""

    def __init__(self, host: Host, mark: Path) -> None:
        self._host, self._mark = host, mark
        self._rounds = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    @property
    def round_limit_s(self) -> float:
        self._rounds += 1
        if self._rounds < 3:
            return self._host.round_limit_s
        wait_for(self._mark.exists)
        return 0.01


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("raise", "no such luck"),
        ("exit", "its process ended with code 7"),
        ("kill", f"its process ended with code {-signal.SIGKILL}"),
        ("hang", "took longer than 0.01 s (round_limit_s)"),
    ],
)
def test_failed_round_names_its_cell_and_keeps_other_rounds(
    tmp_path: Path, where: Target, trouble: str, reason: str
) -> None:
    study = write_study(tmp_path / trouble, {"name": "trouble"})
    (study.folder / "trouble").write_text(f"3 {trouble}")
    plan = Plan(study, study.variants, GRID, where)
    patience = host(tmp_path)
    if trouble == "hang":
        patience = cast(Host, Impatient(patience, study.folder / "hangs"))
    with pytest.raises(HotpathError) as caught:
        run_rounds(plan, HERE, patience)
    said = str(caught.value)
    assert re.match(
        rf"{trouble}: round 3: cell [12] of 2: trouble n=[12]: {re.escape(reason)}; ", said
    )
    assert "finished rounds kept: 2" in said
    kept = [Journal(plan).round_file(number) for number in range(3)]
    assert [path.exists() for path in kept] == [True, True, False]
    before = [path.read_bytes() for path in kept[:2]]
    begun = Journal(plan).run
    assert not (where.root / where.machine).exists()

    (study.folder / "trouble").unlink()
    run_rounds(plan, HERE, host(tmp_path))
    assert [path.read_bytes() for path in kept[:2]] == before
    assert (study.folder / "rounds").stat().st_size == 4
    list(publish(plan, HERE, host(tmp_path)))
    samples = samples_at(where, study, "trouble")
    assert {s.run for s in samples} == {start_of(begun)}
    assert {s.round for s in samples} == {0, 1, 2}


def hanging_round(tmp_path: Path, where: Target) -> tuple[Plan, Host]:
    """A plan whose third round hangs, and a host that does not wait for it."""
    study = write_study(tmp_path / "hang", {"name": "trouble"})
    (study.folder / "trouble").write_text("3 hang")
    impatient = cast(Host, Impatient(host(tmp_path), study.folder / "hangs"))
    return Plan(study, study.variants, GRID, where), impatient


@pytest.mark.usefixtures("quick")
def test_round_that_takes_too_long_leaves_its_stacks(
    tmp_path: Path, where: Target, capfd: pytest.CaptureFixture[str]
) -> None:
    plan, impatient = hanging_round(tmp_path, where)
    with pytest.raises(HotpathError, match="took longer"):
        run_rounds(plan, HERE, impatient)
    said = capfd.readouterr().err
    assert re.search(r"hang: round 3: cell [12] of 2: trouble n=[12]: took longer than", said)
    assert re.search(r"trouble\.py\", line \d+ in fill", said)
    assert re.search(r"measure/round\.py\", line \d+ in measure", said)


@pytest.mark.usefixtures("quick")
def test_crashed_round_leaves_its_stacks(
    tmp_path: Path, where: Target, capfd: pytest.CaptureFixture[str]
) -> None:
    study = write_study(tmp_path / "crash", {"name": "one"})
    (study.folder / "one.py").write_text(
        "import ctypes\n\n\ndef fill(out):\n    ctypes.string_at(0)\n"
    )
    with pytest.raises(HotpathError, match=f"ended with code {-signal.SIGSEGV}"):
        run_rounds(Plan(study, study.variants, GRID, where), HERE, host(tmp_path))
    said = capfd.readouterr().err
    assert "Segmentation fault" in said
    assert re.search(r"one\.py\", line 5 in fill", said)


def test_round_that_cannot_be_killed_is_reported(
    tmp_path: Path, where: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, impatient = hanging_round(tmp_path, where)
    running: list[BaseProcess] = []
    monkeypatch.setattr(processes, "KILLED_S", 0.1)
    monkeypatch.setattr(BaseProcess, "kill", lambda process: running.append(process))
    with pytest.raises(
        HotpathError, match=r"its process \d+ cannot be ended, and the GPU may"
    ) as one:
        run_rounds(plan, HERE, impatient)
    assert "took longer than 0.01 s" in str(one.value)
    (left,) = running
    # Else multiprocessing would wait for it at the end of the program.
    assert left not in multiprocessing.active_children()
    assert left.pid is not None
    os.kill(left.pid, signal.SIGKILL)


def recording(gpu_uuids: Sequence[str], out: Path, stop: Connection) -> None:
    """In place of the telemetry, on a machine without a GPU."""
    out.touch()
    while not stop.poll(PERIOD_S):
        pass


@pytest.mark.parametrize("number", [0, signal.SIGTERM, signal.SIGKILL])
def test_telemetry_ends_with_its_run(
    tmp_path: Path, where: Target, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Also if a signal to the process group, which `timeout` sends, has ended it before."""
    study = write_study(tmp_path / "recorded", {"name": "one"})
    plan = Plan(study, study.variants, GRID, where)
    Journal(plan).begin()
    context = multiprocessing.get_context("forkserver")
    with_gpu = replace(host(tmp_path), gpus=WITH_GPU.gpus)
    monkeypatch.setattr(telemetry, "record", recording)
    before = multiprocessing.active_children()
    with runs._telemetry(plan, Journal(plan), with_gpu, context):
        (recorder,) = {*multiprocessing.active_children()} - {*before}
        wait_for(Journal(plan).telemetry_file.exists)
        assert recorder.pid is not None
        if number:
            os.kill(recorder.pid, number)
            recorder.join()
    assert recorder not in multiprocessing.active_children()
    assert recorder.exitcode == -number


def test_failed_import_names_its_cell(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "unimportable", {"name": "one"})
    (study.folder / "one.py").write_text("import no_such_module_here\n")
    with pytest.raises(
        HotpathError, match=r"round 1: cell 1 of 2: one n=\d: No module named 'no_such_module"
    ):
        run_rounds(Plan(study, study.variants, GRID, where), HERE, host(tmp_path))


def test_file_of_a_round_holds_its_samples(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "files", {"name": "one"})
    plan = Plan(study, study.variants, replace(GRID, rounds=1), where)
    run_rounds(plan, HERE, host(tmp_path))
    assert {row.variant for row in read_rows(Journal(plan).round_file(0))} == {"one"}
    visits = Journal(plan).visits()
    assert {(v.variant, v.case, v.round) for v in visits} == {("one", "n=1", 0), ("one", "n=2", 0)}
    assert visits[0].started_at < visits[1].started_at
    before = Journal(plan).round_file(0).stat().st_mtime_ns
    run_rounds(plan, HERE, host(tmp_path))
    assert Journal(plan).round_file(0).stat().st_mtime_ns == before


def test_host_is_measured_once_for_all_published_variants(
    tmp_path: Path, where: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = write_study(tmp_path / "several", *({"name": name} for name in ("one", "two", "three")))
    tried = Mock(return_value=QUIET)
    monkeypatch.setattr("analysis.measure.publish.recent_conditions", tried)
    assert len(run(Plan(study, study.variants, replace(GRID, rounds=1), where), tmp_path)) == 4
    tried.assert_called_once()
