"""The command: what a crash, a full disk, an edit or a bad variant costs. The command for one
variant."""

import errno
import mmap
import os
import re
import shutil
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import FieldError, HotpathError
from analysis.measure import __main__ as program
from analysis.measure import bench
from analysis.measure.bench import case_of, main, options
from analysis.measure.plan import Place, pending, wrong_variants
from analysis.results.store.runs import described
from analysis.study import Study
from analysis.study.config import load_config
from tests.compiled import toolchain
from tests.editing import replace_in
from tests.measure.studies import FILL, GRID, contents, only_run, started_rounds, write_study
from tests.synthetic import COPY, assert_measured_once

ROUNDS = 2
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}

Measure = Callable[..., None]
default_config = cache(lambda: load_config({}))


class Crash:
    """Ends the process, or a child of it, at the n-th change of a file under some folders; or has
    a full disk from then on.

    A file that is opened to be written is left empty if `torn`, as by a crash right after.
    """

    def __init__(self, folders: tuple[Path, ...], at: int, torn: bool, is_full: bool) -> None:
        self._folders, self._at, self._torn = tuple(map(str, folders)), at, torn
        self._is_full = is_full
        self._count = mmap.mmap(-1, 8)  # shared with children

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        opens = event == "open" and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
        path = str(arguments[0]) if opens or event in CHANGES else ""
        if not path.startswith(self._folders):
            return
        count = struct.unpack("q", self._count[:])[0] + 1
        self._count[:] = struct.pack("q", count)
        if self._is_full and opens and count >= self._at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if not self._is_full and count == self._at:
            if opens and self._torn:
                os.close(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY))
            os._exit(9)


def in_child(work: Callable[[], None], log: Path, crash: Crash | None = None) -> int:
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
    config = replace(default_config(), grid=replace(GRID, rounds=ROUNDS), round_limit_s=3.0)

    def run(studies: Sequence[Study] = (study,)) -> None:
        named = {study.name: study for study in studies}
        known = replace(config, studies=named, known=named)
        monkeypatch.setattr(program, "load_config", lambda overrides: known)
        program.measure(list(named), None, {})

    return run


@pytest.mark.parametrize(
    ("is_full", "torn", "step"),
    [
        (False, True, 11),
        (True, False, 13),
        pytest.param(False, True, 1, marks=pytest.mark.exhaustive),
        pytest.param(False, False, 1, marks=pytest.mark.exhaustive),
    ],
)
def test_a_crash_or_a_full_disk_at_any_change_of_a_file_costs_one_round_at_most(
    study: Study,
    place: Place,
    build_folder: Path,
    measure: Measure,
    tmp_path: Path,
    is_full: bool,
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
        crash = Crash(folders, at, torn, is_full)
        ended = in_child(lambda: fail_in_one_line(measure), log, crash)
        if ended and is_full:
            [error] = [line for line in log.read_text().splitlines() if "error" in line.lower()]
            assert error.startswith("error: ") and "make room" in error
            assert "Traceback" not in log.read_text()
            assert contents(place.root) == {}
        if ended:
            assert in_child(measure, log) == 0, f"after change {at}"
        assert pending(study, place, "default") == []
        assert_measured_once(place.folder / study.name, study.variant_names, ROUNDS)
        # No other file is left but the journal of a published run.
        left = {path.name for path in (build_folder / "rounds").rglob("*") if path.is_file()}
        assert not left or "round-00.json" in left
        assert list(place.root.rglob(".*")) == []
        assert ROUNDS <= started_rounds(study) <= ROUNDS + 1
    assert at > 20


def test_a_damaged_run_is_named_and_measured_again(
    study: Study, place: Place, measure: Measure, capsys: pytest.CaptureFixture[str]
) -> None:
    measure()
    (path,) = described(place.folder / study.name)
    replace_in(path.with_suffix(".csv"), ",ok,", ",okay,")
    before = contents(place.root)
    measure()
    assert f"{path.name} is left out: " in capsys.readouterr().out
    assert before.items() < contents(place.root).items(), "a bad file is not deleted"
    assert pending(study, place, "default") == []


@pytest.mark.parametrize("changed", ["other_users", "run_rounds"])
def test_code_that_changes_meanwhile_publishes_nothing(
    study: Study, place: Place, measure: Measure, monkeypatch: pytest.MonkeyPatch, changed: str
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
    assert started_rounds(study) == 2 * ROUNDS


CRASH = FILL + "    import ctypes; ctypes.string_at(0)\n"
FULL = FILL + f"    raise OSError({errno.ENOSPC}, 'No space left on device', 'here')\n"


def test_bad_studies_cost_only_themselves(tmp_path: Path, place: Place, measure: Measure) -> None:
    """Each has a line. Nothing that comes after a full disk could be kept."""
    crash, wrong, full = (
        write_study(tmp_path / name, {"name": "one"}, {"name": variant, "after": "one"})
        for name, variant in (("a_bad", "bad"), ("b_bad", "wrong"), ("full", "bad"))
    )
    (crash.folder / "bad.py").write_text(CRASH)
    (full.folder / "bad.py").write_text(FULL)
    good = write_study(tmp_path / "good", {"name": "trouble"})

    def errors(*studies: Study) -> list[str]:
        with pytest.raises(HotpathError) as caught:
            measure(studies)
        return str(caught.value).splitlines()

    first, no_room, _ = errors(crash, wrong, full, good)
    said = r"a_bad: round 1: cell \d: bad n=\d: its process ended with code -11; "
    assert re.match(said, first) and "make room" in no_room
    assert only_run(place, wrong) and started_rounds(good) == 0
    for _ in range(2):
        _, second = errors(crash, wrong, good)
        assert second == "error: b_bad: wrong output of wrong; marked failed in the results"
        assert only_run(place, good) and started_rounds(good) == 2
    assert wrong_variants(wrong, place) == ["wrong"]
    assert wrong_variants(wrong, replace(place, host="12345678")) == []
    (crash.folder / "bad.py").write_text(FILL)
    (wrong.folder / "wrong.py").write_text(FILL)
    assert wrong_variants(wrong, place) == []
    measure([crash, wrong, good])


def test_invalid_options_and_names_are_one_error(capsys: pytest.CaptureFixture[str]) -> None:
    variant = replace(COPY.variant("in_flight"), payload="rows // (batch - 1) - 1")
    with pytest.raises(SystemExit):
        options(COPY, variant).parse_args(["--batch", "-1"])
    assert "--batch" in capsys.readouterr().err
    for batch, message in (("1", "by zero"), ("2000", "at least 0, got -1")):
        parsed = options(COPY, variant).parse_args(["--batch", batch, "--rows", "5"])
        with pytest.raises(FieldError, match=f"^payload_bytes: expected .*{message}"):
            case_of(variant, parsed)
    with pytest.raises(HotpathError, match=r"study: expected one of .*h2d_gather.*, got 'gather'"):
        main(["gather"])


def test_every_metric_is_printed_or_the_first_fault(
    tmp_path: Path,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = write_study(tmp_path / "fill", {"name": "one"}, {"name": "wrong"}, {"name": "refuses"})
    monkeypatch.setattr(bench, "discover", lambda: {"fill": study})
    monkeypatch.setattr(bench, "find_places", lambda *_: {"fill": place})
    monkeypatch.setattr(bench, "use_cpus", lambda cpus: None)
    main(["fill", "one", "--n", "2"])
    printed = capsys.readouterr().out
    assert "one n=2\npayload: 16 B\noutput: every byte verified\n" in printed
    assert re.search(r"host time: .*s, throughput .* GB/s = .* GiB/s\nbytes: 16.0 B\n", printed)
    main(["fill", "one", "--single-launch"])
    for variant, message in (("wrong", "wrong output: byte 15: ex"), ("refuses", "skipped: too l")):
        with pytest.raises(HotpathError, match=message):
            main(["fill", variant, "--n", "2"])
