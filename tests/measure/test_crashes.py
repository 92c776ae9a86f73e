"""Restart after a crash at any change of a file: all is measured, nothing twice."""

from __future__ import annotations

import errno
import json
import mmap
import multiprocessing
import os
import shutil
import struct
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.base.cli import fail_in_one_line
from analysis.measure import __main__ as program
from analysis.measure.journal import Journal, discard_outdated, settle
from analysis.measure.plan import PUBLISHING, Plan, Target, leftovers, pending
from analysis.measure.publish import drafted, publish
from analysis.measure.run import run_rounds
from analysis.study import Study
from analysis.study.claims import Claim
from analysis.study.claims.kinds import Speedup
from analysis.study.config import load_config
from tests.compiled import toolchain
from tests.editing import edit_json, replace_in
from tests.measure.conftest import QUIET
from tests.measure.studies import GRID, HERE, host, write_study
from tests.synthetic import assert_measured_once

ROUNDS = 2
NAMES = ("trouble", "one")
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
        finally:
            os._exit(code)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that take milliseconds: processes are forked, and nothing is warmed up."""
    context = multiprocessing.get_context("fork")
    monkeypatch.setattr(context, "set_forkserver_preload", lambda names: None, raising=False)
    monkeypatch.setattr(multiprocessing, "get_context", lambda name: context)
    monkeypatch.setattr("analysis.measure.round.WARM_UP_S", 0.0001)
    for name in ("publish.recent_conditions", "run.recent_conditions", "run.conditions"):
        monkeypatch.setattr(f"analysis.measure.{name}", lambda: QUIET)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    first, second = NAMES
    return write_study(tmp_path / "study", {"name": first}, {"name": second, "after": first})


@pytest.fixture
def measure(study: Study, where: Target, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The program, for this study."""
    grid = replace(GRID, rounds=ROUNDS)
    config = replace(load_config(), studies={study.name: study}, grid=grid, machine=where.machine)
    monkeypatch.setattr(program, "load_config", lambda overrides: config)
    monkeypatch.setattr(program, "target", lambda config, gpu: where)
    monkeypatch.setattr(program, "find_toolchain", lambda *paths: toolchain())
    return lambda: program.measure([study.name], None, {})


@pytest.fixture
def finished(quick: None, study: Study, where: Target, build_folder: Path) -> Plan:
    """A plan all of whose rounds are in its journal."""
    plan = Plan(study, study.variants, GRID, where)
    run_rounds(plan, HERE, host(build_folder))
    return plan


def assert_complete(study: Study, where: Target, build: Path) -> None:
    """Check that all is measured once, and that no other file is left."""
    assert pending(study, where, "default", HERE) == []
    for variant in study.variants:
        path = where.root / where.machine / study.name / f"{variant.name}.csv"
        assert_measured_once(path, ROUNDS)
    assert [path for path in (build / "rounds").rglob("*") if path.is_file()] == []
    assert list(where.root.rglob(".*")) == []


def measured_rounds(study: Study) -> int:
    """Number of started rounds: each loads the module once."""
    path = study.folder / "rounds"
    return path.stat().st_size if path.exists() else 0


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def everything_again(study: Study, where: Target, build: Path) -> None:
    for folder in (where.root, build):
        shutil.rmtree(folder, ignore_errors=True)
    (study.folder / "rounds").unlink(missing_ok=True)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("torn", "step"),
    [
        (True, 5),
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
    assert at > 60


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
    assert at > 60


def test_damaged_rounds_are_measured_again_and_no_other(
    finished: Plan, build_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = [Journal(finished).round_file(number) for number in range(GRID.rounds)]
    kept[1].write_text(kept[1].read_text()[:-20])
    kept[2].unlink()
    before = kept[0].read_bytes()
    run_rounds(finished, HERE, host(build_folder))
    output = capsys.readouterr().out
    assert "round 2 is measured again: " in output
    assert "round 3 is measured again: " in output
    assert kept[0].read_bytes() == before
    assert {s.round for s in Journal(finished).samples()} == {0, 1, 2}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (("one.csv", ",ok,", ",okay,"), "one.csv: checksum differs from the one in one.json"),
        (("one.json", "{", "["), "one.json: not valid JSON: "),
        (("trouble.json", '"run"', '"ran"'), "trouble.json: run: expected a value"),
    ],
)
def test_damaged_results_are_reported_before_any_launch(
    study: Study,
    where: Target,
    measure: Callable[[], None],
    build_folder: Path,
    damaged: tuple[str, str, str],
    message: str,
) -> None:
    assert in_child(measure) == 0
    file, old, new = damaged
    replace_in(where.root / where.machine / study.name / file, old, new)
    for name in study.variant_names:  # makes a variant with complete results pending
        replace_in(study.folder / f"{name}.py", "len(out)", "(len(out))")
    before, rounds = contents(where.root), measured_rounds(study)
    log = build_folder / "log"
    assert in_child(lambda: fail_in_one_line(measure), log=log) == 1
    *_, error = log.read_text().splitlines()
    assert error.startswith("error: ") and message in error
    assert "before study is measured, restore it, or move all files" in error
    assert measured_rounds(study) == rounds
    assert contents(where.root) == before


def test_a_round_to_be_repeated_is_missing_from_then_on(
    finished: Plan, build_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Journal(finished).repeat(1, ["noise"])
    assert Journal(finished).missing() == [1]
    Journal(finished).round_file(1).unlink()  # as its second try does, which may be stopped
    assert Journal(finished).missing() == [1]
    assert "damaged" not in capsys.readouterr().out
    run_rounds(finished, HERE, host(build_folder))
    assert Journal(finished).missing() == []
    assert [(entry["round"], entry["why"]) for entry in Journal(finished).repeated] == [
        (1, ["noise"])
    ]


def folder_instead(path: Path) -> None:
    path.unlink()
    (path / "inner").mkdir(parents=True)


def changed(old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        assert old in path.read_bytes()
        path.write_bytes(path.read_bytes().replace(old, new, 1))

    return change


DAMAGE: list[tuple[str, Callable[[Path], object], list[int]]] = [
    ("round-01.csv", folder_instead, [1]),
    ("round-01.csv", lambda path: path.write_bytes(b"\0" * 99), [1]),
    ("round-01.json", folder_instead, [1]),
    ("round-01.json", changed(b'"spin_s"', b'"spin"'), [1]),
    ("round-01.json", lambda path: path.write_text("[]"), [1]),
    ("round-01.json", lambda path: edit_json(path, lambda d: d.update(conditions=None)), [1]),
    ("round-01.json", lambda path: edit_json(path, lambda d: d.update(seconds="long")), [1]),
    ("round-01.json", lambda path: edit_json(path, lambda d: d.update(newcomers={})), [1]),
    ("round-01.visits.csv", folder_instead, [1]),
    ("round-01.visits.csv", changed(b"one", b"o\0e"), [1]),
    ("repeated.json", lambda path: path.write_text('{"round": 1}'), []),
    ("repeated.json", lambda path: path.write_text("[1]"), []),
    ("repeated.json", lambda path: path.write_text("["), []),
    ("repeated.json", lambda path: path.mkdir(), []),
    ("bounds.json", lambda path: path.write_text("[]"), []),
    ("bounds.json", folder_instead, []),
    ("telemetry.csv", lambda path: path.mkdir(), []),
    ("telemetry.csv", lambda path: path.write_bytes(b"\0" * 99 + b"\n"), []),
    ("telemetry.csv", lambda path: path.write_bytes(b"\xff,,\n" + b"9," * 9 + b"\n"), []),
]
"""Files of a journal, their damage, and the rounds that it costs."""


@pytest.mark.parametrize(("name", "damage", "costs"), DAMAGE)
def test_damage_of_a_journal_costs_a_round_at_most_and_is_one_line(
    finished: Plan,
    where: Target,
    build_folder: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    damage: Callable[[Path], object],
    costs: list[int],
) -> None:
    damage(finished.journal / name)
    rounds = measured_rounds(finished.study)
    capsys.readouterr()
    run_rounds(finished, HERE, host(build_folder))
    assert measured_rounds(finished.study) == rounds + len(costs)
    list(publish(finished, HERE, host(build_folder)))
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "damaged" in line]
    assert name.partition(".")[0] in line
    for variant in finished.study.variants:
        path = where.root / where.machine / finished.study.name / f"{variant.name}.csv"
        assert_measured_once(path, GRID.rounds)


def test_provenance_has_the_seconds_of_each_stage(finished: Plan, build_folder: Path) -> None:
    draft, *_ = drafted(finished, HERE, host(build_folder), Journal(finished))
    found = json.loads(draft.texts["test-box/study/one.json"])["stages_s"]
    rounds_s = sum(record.seconds for record in Journal(finished).records.values())
    assert 0 <= found["recorded"] <= found["timing"]  # rounded to milliseconds
    assert found["start"] > 0
    assert sum(found.values()) - found["recorded"] <= rounds_s + 0.1


def test_raw_output_of_nvbench_is_no_damage(
    finished: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = finished.journal / "round-01.nvbench.json-bin"
    raw.mkdir()
    assert Journal(finished).missing() == []
    assert raw.is_dir()
    assert "damaged" not in capsys.readouterr().out


def test_a_damaged_list_of_repeats_costs_no_round(finished: Plan) -> None:
    Journal(finished).repeat(1, ["noise"])
    (finished.journal / "repeated.json").write_text("[")
    assert Journal(finished).missing() == [1]


@pytest.mark.usefixtures("quick")
def test_resumed_run_names_the_bounds_of_its_start(
    study: Study, where: Target, build_folder: Path
) -> None:
    def published(claimed: Study) -> dict[str, Any]:
        plan = Plan(claimed, claimed.variants, GRID, where)
        run_rounds(plan, HERE, host(build_folder))
        draft, *_ = drafted(plan, HERE, host(build_folder), Journal(plan))
        texts = (draft.texts[f"test-box/study/{name}.json"] for name in claimed.variant_names)
        return {name: json.loads(text)["bounds"] for name, text in zip(NAMES, texts, strict=True)}

    test = Speedup(of="one", over="trouble", case="n=1", at_least=1.0)
    claim = Claim("it", "So.", None, (test,), "", bounds=("0" * 12,))
    first = replace(study, claims=(claim, replace(claim, id="again")))
    named = {"it": "0" * 12, "again": "0" * 12}
    assert published(first) == dict.fromkeys(NAMES, named)
    later = replace(study, claims=(replace(claim, bounds=("1" * 12,)),))
    journal = Journal(Plan(later, later.variants, GRID, where))
    journal.repeat(1, ["noise"])
    assert published(later) == dict.fromkeys(NAMES, named)
    for number in (0, 1, 2):
        Journal(Plan(later, later.variants, GRID, where)).round_file(number).unlink()
    assert published(later) == {name: {"it": "1" * 12} for name in NAMES}, "begun anew"


def test_interrupted_publication_is_completed_first(
    finished: Plan, study: Study, where: Target, build_folder: Path
) -> None:
    draft, summary, _ = drafted(finished, HERE, host(build_folder), Journal(finished))
    Journal(finished).stage(draft.texts, summary, "")
    # Published in part: samples without their provenance.
    one = where.root / where.machine / study.name / "one.csv"
    one.parent.mkdir(parents=True)
    one.write_text(draft.texts["test-box/study/one.csv"])
    before = contents(one.parent)

    assert pending(study, where, "default", HERE) == []
    assert leftovers(study, where, "default") == [finished.journal / PUBLISHING]
    assert contents(one.parent) == before
    first, *lines = settle(study, where, "default")
    assert first == "study: publishing what an earlier run has measured"
    assert lines == summary
    assert contents(where.root) == draft.texts
    assert leftovers(study, where, "default") == []
    assert not finished.journal.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda publishing: publishing.rename(publishing.with_name(".away")) and publishing.mkdir(),
        lambda publishing: publishing.rename(publishing.with_name(".away")) and publishing.touch(),
        lambda publishing: (publishing / "outcome.json").write_text("[]"),
        lambda publishing: folder_instead(publishing / "outcome.json"),
        lambda publishing: folder_instead(publishing / "results/test-box/study/one.csv"),
        lambda publishing: (publishing / "results/test-box/machine.json").unlink(),
        lambda publishing: (publishing / "results/test-box/study/one.json").write_bytes(b"\0"),
    ],
)
def test_damage_of_what_is_published_costs_no_round(
    finished: Plan,
    study: Study,
    where: Target,
    build_folder: Path,
    damage: Callable[[Path], object],
) -> None:
    draft, summary, _ = drafted(finished, HERE, host(build_folder), Journal(finished))
    Journal(finished).stage(draft.texts, summary, "")
    damage(finished.journal / PUBLISHING)
    (line,) = settle(study, where, "default")
    assert line.endswith(": publishing starts again from the finished rounds")
    assert contents(where.root) == {}
    assert Journal(finished).missing() == []
    list(publish(finished, HERE, host(build_folder)))
    assert pending(study, where, "default", HERE) == []


@pytest.mark.usefixtures("quick")
def test_journal_without_a_resuming_command_is_dropped_and_reported(
    tmp_path: Path, where: Target, build_folder: Path
) -> None:
    study = write_study(tmp_path / "apart", {"name": "trouble"}, {"name": "one"})
    again = Plan(study, tuple(study.shown_again("trouble")), GRID, where)
    whole = Plan(study, study.variants, GRID, where)
    for plan in (again, whole):
        run_rounds(plan, HERE, host(build_folder))
    assert list(discard_outdated(whole, HERE)) == []
    replace_in(study.folder / "trouble.py", "rounds", "round_numbers")
    changed = Plan(study, study.variants, GRID, where)
    assert len(list(discard_outdated(changed, HERE))) == 2
    assert not again.journal.exists()
    assert not whole.journal.exists()
