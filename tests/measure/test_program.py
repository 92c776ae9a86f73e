"""The command: what a crash, a kill, a full disk, an edit or a bad variant costs."""

from __future__ import annotations

import errno
import mmap
import os
import re
import shutil
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.base.reading import read_yaml
from analysis.measure import __main__ as program
from analysis.measure.places import Place
from analysis.measure.plan import outcome, pending, wrong_variants
from analysis.results.store.runs import described
from analysis.study import Study
from analysis.study.config import CONFIG_FILE, Config, load_config
from tests.compiled import toolchain
from tests.editing import replace_in
from tests.measure.studies import GRID, contents, measured_rounds, only_run, write_study
from tests.synthetic import assert_measured_once

ROUNDS = 2
CRASHED = 9
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}

Measure = Callable[..., None]


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
    study: Study, place: Place, build_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Measure:
    """The program, for these studies."""
    monkeypatch.setattr(program, "BUILD", build_folder)
    monkeypatch.setattr(program, "keep_sockets_in", lambda folder: None)  # lasts longer than a test
    monkeypatch.setattr(program, "find_toolchain", lambda *paths: toolchain())
    monkeypatch.setattr(
        program, "find_places", lambda config, gpus: dict.fromkeys(config.studies, place)
    )
    config = replace(load_config({}), grid=replace(GRID, rounds=ROUNDS), round_limit_s=3.0)

    def run(studies: Sequence[Study] = (study,)) -> None:
        named = {study.name: study for study in studies}

        def loaded(overrides: object) -> Config:
            return replace(config, studies=named, known=named)

        monkeypatch.setattr(program, "load_config", loaded)
        program.measure(list(named), None, {})

    return run


@pytest.mark.parametrize(
    ("kind", "torn", "step"),
    [
        (Crash, True, 11),
        (FullDisk, False, 13),
        pytest.param(Crash, True, 1, marks=pytest.mark.exhaustive),
        pytest.param(Crash, False, 1, marks=pytest.mark.exhaustive),
    ],
)
def test_a_crash_or_a_full_disk_at_any_change_of_a_file_costs_one_round_at_most(
    study: Study,
    place: Place,
    build_folder: Path,
    measure: Measure,
    tmp_path: Path,
    kind: type[Crash],
    torn: bool,
    step: int,
) -> None:
    """A full disk is one line, and publishes nothing."""
    folders, at, ended = (build_folder, place.root), 5 - step, 1
    while ended:
        at += step
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        (study.folder / "rounds").unlink(missing_ok=True)
        log = tmp_path / f"log-{at}"
        ended = in_child(lambda: fail_in_one_line(measure), kind(folders, at, torn), log)
        if ended and kind is FullDisk:
            [error] = [line for line in log.read_text().splitlines() if "error" in line.lower()]
            assert error.startswith("error: ") and "make room" in error
            assert "Traceback" not in log.read_text()
            assert contents(place.root) == {}
        if ended:
            assert in_child(measure) == 0, f"after change {at}"
        assert pending(study, place, "default") == []
        assert_measured_once(place.folder / study.name, study.variant_names, ROUNDS)
        # No other file is left but the journal of a published run.
        left = {path.name for path in (build_folder / "rounds").rglob("*") if path.is_file()}
        assert not left or "round-00.json" in left
        assert list(place.root.rglob(".*")) == []
        assert ROUNDS <= measured_rounds(study) <= ROUNDS + 1
    assert at > 30


def test_a_damaged_run_is_named_and_measured_again(
    study: Study, place: Place, measure: Measure, build_folder: Path
) -> None:
    assert in_child(measure) == 0
    (path,) = described(place.folder / study.name)
    replace_in(path.with_suffix(".csv"), ",ok,", ",okay,")
    before = contents(place.root)
    log = build_folder / "log"
    assert in_child(measure, log=log) == 0
    assert f"{path.name} is left out: " in log.read_text()
    assert before.items() < contents(place.root).items(), "a bad file is not deleted"
    assert pending(study, place, "default") == []


@pytest.mark.parametrize("changed", ["Journal", "run_rounds"])
def test_code_that_changes_meanwhile_publishes_nothing(
    study: Study,
    place: Place,
    measure: Measure,
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
    assert contents(place.root) == {}
    measure()
    assert pending(study, place, "default") == []


CRASH = "import ctypes\n\n\ndef fill(out):\n    ctypes.string_at(0)\n"
FULL = f"\n\ndef fill(out):\n    raise OSError({errno.ENOSPC}, 'No space left on device', 'here')\n"


def test_bad_studies_cost_themselves_until_they_are_mended(
    tmp_path: Path, place: Place, measure: Measure
) -> None:
    """Each has a line. Nothing that comes after a full disk could be kept."""
    sources = {"a_bad": CRASH, "b_bad": "", "full": FULL}
    studies = {}
    for name, source in sources.items():
        bad = {"name": "bad" if source else "wrong", "after": "one"}
        studies[name] = write_study(tmp_path / name, {"name": "one"}, bad)
        if source:
            (studies[name].folder / "bad.py").write_text(source)
    crash, wrong, full = studies.values()
    good = write_study(tmp_path / "good", {"name": "trouble"})
    with pytest.raises(HotpathError) as caught:
        measure([crash, wrong, full, good])
    lines = str(caught.value).splitlines()
    said = r"a_bad: round 1: cell \d: bad n=\d: its process ended with code -11; "
    assert re.match(said, lines[0])
    assert lines[1] == "error: b_bad: wrong output of wrong; marked failed in the results"
    assert "make room" in lines[2] and len(lines) == 3
    assert only_run(place, wrong) and measured_rounds(good) == 0
    for _ in range(2):
        with pytest.raises(HotpathError) as caught:
            measure([crash, wrong, good])
        assert len(str(caught.value).splitlines()) == 2
        assert only_run(place, good) and measured_rounds(good) == 2
    assert wrong_variants(wrong, place) == ["wrong"]
    assert wrong_variants(wrong, replace(place, host="12345678")) == []
    for study, name in ((crash, "bad"), (wrong, "wrong")):
        (study.folder / f"{name}.py").write_text((study.folder / "one.py").read_text())
    assert wrong_variants(wrong, place) == []
    measure([crash, wrong, good])


def test_the_command_of_a_run_is_quoted_and_omits_defaults() -> None:
    defaults = read_yaml(CONFIG_FILE)
    assert program.command_of(["calls"], None, defaults) == "python -m analysis.measure calls"
    asked = defaults | {"machine": "my-box", "nvcc": "/opt/cuda/bin/nvcc", "libfabric": "/home/me"}
    assert program.command_of(["calls"], "python", asked) == (
        'python -m analysis.measure calls --variant python --config \'{"machine": "my-box"}\''
    )


def test_the_outcome_of_the_workflow_lists_what_was_measured_and_skipped(
    tmp_path: Path, place: Place, measure: Measure
) -> None:
    variants = ({"name": "one"}, {"name": "wrong"}, {"name": "on_gpu", "needs": ["gpu"]})
    measured = write_study(tmp_path / "measured", *variants, {"name": "refuses"})
    skipped = write_study(tmp_path / "skipped", {"name": "one", "needs": ["gpu"]})
    untouched = write_study(tmp_path / "untouched", {"name": "one"})
    began = time.time()
    with pytest.raises(HotpathError):
        measure([measured, skipped])
    studies = [measured, skipped, untouched]
    places = {study.name: place for study in studies}
    assert list(outcome(studies, places, began)) == [
        "measured: 3 variants measured in 4 cells, wrong output in 1",
        "skipped: 2 variants of measured, skipped: no GPU",
        "skipped: 1 variants of measured: too large for this machine",
        f"results: {place.folder}",
    ]
    assert list(outcome(studies, places, time.time())) == []
