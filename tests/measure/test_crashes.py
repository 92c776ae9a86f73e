"""Restart after a crash at any change of a file: all is measured, nothing twice."""

from __future__ import annotations

import errno
import mmap
import os
import random
import shutil
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.measure import __main__ as program
from analysis.measure import places
from analysis.measure.plan import Target, pending
from analysis.results.store.runs import described
from analysis.study import Study
from analysis.study.config import load_config
from tests.compiled import toolchain
from tests.editing import replace_in
from tests.measure.studies import GRID, HERE, contents, measured_rounds
from tests.synthetic import assert_measured_once

ROUNDS = 2
CRASHED = 9
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}


class Crash:
    """Ends the process, or a child of it, at the n-th change of a file under some folders.

    A file that is opened to be written is left empty if `torn`, as by a crash right after.
    """

    def __init__(self, folders: tuple[Path, ...], at: int, torn: bool) -> None:
        self._folders, self._at, self._torn = tuple(map(str, folders)), at, torn
        self._count = mmap.mmap(-1, 8)  # shared with children

    @property
    def count(self) -> int:
        return int(struct.unpack("q", self._count[:])[0])

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        opens = event == "open" and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if not (opens or event in CHANGES) or not str(arguments[0]).startswith(self._folders):
            return
        self._count[:] = struct.pack("q", self.count + 1)
        self.happen(str(arguments[0]), opens)

    def happen(self, path: str, opens: bool) -> None:
        if self.count != self._at:
            return
        if opens and self._torn:
            os.close(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY))
        os._exit(CRASHED)


class FullDisk(Crash):
    """A disk that is full from the n-th change on."""

    def happen(self, path: str, opens: bool) -> None:
        if opens and self.count >= self._at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def in_child(
    work: Callable[[], None], crash: Crash | None = None, log: Path = Path(os.devnull)
) -> int:
    """Exit code of a child process that runs `work`; its output is appended to `log`."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with log.open("a", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
        code = 1
        try:
            if crash:
                sys.addaudithook(crash)
            work()
            code = 0
        except SystemExit as stop:
            print(stop.code)
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)


@pytest.fixture
def measure(
    study: Study, where: Target, build_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """The program, for this study."""
    monkeypatch.setattr(program, "BUILD", build_folder)
    grid = replace(GRID, rounds=ROUNDS)
    config = replace(load_config(), studies={study.name: study}, grid=grid, machine=where.machine)
    monkeypatch.setattr(program, "load_config", lambda overrides: config)
    monkeypatch.setattr(places, "target", lambda config, gpus: where)
    monkeypatch.setattr(program, "find_toolchain", lambda *paths: toolchain())
    return lambda: program.measure([study.name], None, {})


def assert_complete(study: Study, where: Target, build: Path) -> None:
    """Check that all is measured once, and that no other file is left."""
    assert pending(study, where, "default", HERE) == []
    assert_measured_once(where.folder / study.name, study.variant_names, ROUNDS)
    assert [path for path in (build / "rounds").rglob("*") if path.is_file()] == []
    assert list(where.root.rglob(".*")) == []


def everything_again(study: Study, where: Target, build: Path) -> None:
    for folder in (where.root, build):
        shutil.rmtree(folder, ignore_errors=True)
    (study.folder / "rounds").unlink(missing_ok=True)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("torn", "step"),
    [
        (True, 11),
        pytest.param(True, 5, marks=pytest.mark.long),
        pytest.param(True, 1, marks=pytest.mark.exhaustive),
        pytest.param(False, 1, marks=pytest.mark.exhaustive),
    ],
)
def test_a_crash_at_any_change_of_a_file_costs_one_round_at_most(
    study: Study,
    where: Target,
    build_folder: Path,
    measure: Callable[[], None],
    torn: bool,
    step: int,
) -> None:
    at, ended = 0, CRASHED
    while ended:
        at += step
        everything_again(study, where, build_folder)
        ended = in_child(measure, Crash((build_folder, where.root), at, torn))
        if ended:
            assert in_child(measure) == 0, f"after a crash at change {at}"
        assert_complete(study, where, build_folder)
        assert ROUNDS <= measured_rounds(study) <= ROUNDS + 1
    assert at > 40


@pytest.mark.usefixtures("quick")
def test_full_disk_is_one_line_and_publishes_nothing(
    tmp_path: Path, study: Study, where: Target, build_folder: Path, measure: Callable[[], None]
) -> None:
    at, ended = -8, 1
    while ended:
        at += 13
        everything_again(study, where, build_folder)
        log = tmp_path / f"log-{at}"
        ended = in_child(
            lambda: fail_in_one_line(measure), FullDisk((build_folder, where.root), at, False), log
        )
        if ended:
            [error] = [line for line in log.read_text().splitlines() if "error" in line.lower()]
            assert error.startswith("error: ")
            assert "make room" in error
            assert "Traceback" not in log.read_text()
            assert contents(where.root) == {}
            assert in_child(measure) == 0, f"after change {at}"
        assert_complete(study, where, build_folder)
        assert measured_rounds(study) <= ROUNDS + 1
    assert at > 40


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kills", [12, pytest.param(300, marks=pytest.mark.long)])
def test_kills_at_random_moments_lose_no_finished_round(
    study: Study, where: Target, build_folder: Path, measure: Callable[[], None], kills: int
) -> None:
    """Round after round, run after run: what is finished stays, whatever is killed."""
    rng = random.Random(kills)
    began = time.monotonic()
    assert in_child(measure) == 0
    duration_s = time.monotonic() - began
    runs = 1
    finished: set[Path] = set()
    for _ in range(kills):
        source = study.folder / "one.py"
        if pending(study, where, "default", HERE) == []:
            source.write_text(f"{source.read_text()}\nN{runs} = {runs}\n")
            runs, finished = runs + 1, set()
        pid = os.fork()
        if not pid:
            os.setpgid(0, 0)
            os._exit(in_child(measure))
        time.sleep(rng.uniform(0, duration_s))
        with suppress(ProcessLookupError):  # not yet a group, or already over
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        records = set(build_folder.glob("rounds/*/*/*/round-*.json"))
        is_published = pending(study, where, "default", HERE) == []
        assert is_published or finished <= records
        finished = records
    assert in_child(measure) == 0
    assert pending(study, where, "default", HERE) == []
    assert [path for path in (build_folder / "rounds").rglob("*") if path.is_file()] == []
    assert list(where.root.rglob(".*")) == []
    for run in where.runs(study):
        assert run.about.rounds == ROUNDS


@pytest.mark.usefixtures("quick")
def test_a_damaged_run_is_named_and_measured_again(
    study: Study, where: Target, measure: Callable[[], None], build_folder: Path
) -> None:
    assert in_child(measure) == 0
    (path,) = described(where.folder / study.name)
    replace_in(path.with_suffix(".csv"), ",ok,", ",okay,")
    before = contents(where.root)
    log = build_folder / "log"
    assert in_child(measure, log=log) == 0
    assert f"{path.name} is left out: " in log.read_text()
    assert before.items() < contents(where.root).items(), "a bad file is not deleted"
    assert pending(study, where, "default", HERE) == []


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("changed", ["expected", "run_rounds"])
def test_code_that_changes_meanwhile_publishes_nothing(
    study: Study,
    where: Target,
    measure: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    changed: str,
) -> None:
    """Neither its old samples by the new hash, nor a run without samples."""
    work = getattr(program, changed)

    def work_and_edit(*arguments: Any) -> Any:
        done = work(*arguments)
        replace_in(study.folder / "one.py", "len(out)", "1 * len(out)")
        return done

    with monkeypatch.context() as during:
        during.setattr(program, changed, work_and_edit)
        with pytest.raises(HotpathError, match=r"study: its code has changed since"):
            measure()
    assert contents(where.root) == {}
    measure()
    assert pending(study, where, "default", HERE) == []
