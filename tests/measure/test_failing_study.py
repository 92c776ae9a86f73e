"""One bad variant: the other studies of the command are measured, and the command fails each time
until the variant is mended or its study left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from analysis.measure import __main__ as command
from analysis.measure import machine_lock, places
from analysis.measure.plan import Target, wrong_variants
from analysis.study import Study
from analysis.study.config import Config, load_config
from tests.measure.studies import GRID, measured_rounds, runs_at, write_study

Measure = Callable[[Sequence[Study]], None]
CRASH = "import ctypes\n\n\ndef fill(out):\n    ctypes.string_at(0)\n"
HANG = "import time\n\n\ndef fill(out):\n    time.sleep(3600)\n"


@pytest.fixture
def measure(where: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Runs the command for some studies, on a machine of its own."""
    monkeypatch.setenv(machine_lock.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(places, "target", lambda *_: where)
    monkeypatch.setattr(command, "describe", lambda gpus: None)
    monkeypatch.setattr(command, "require_same_kind", lambda *_: None)

    def run(studies: Sequence[Study]) -> None:
        config = load_config({})
        grid = replace(GRID, rounds=2)
        named = {study.name: study for study in studies}

        def loaded(overrides: object) -> Config:
            return replace(config, grid=grid, studies=named, known=named, round_limit_s=3.0)

        monkeypatch.setattr(command, "load_config", loaded)
        command.measure(list(named), None, {})

    return run


def bad_study(folder: Path, kind: str) -> Study:
    if kind == "wrong":
        return write_study(folder, {"name": "one"}, {"name": "wrong", "after": "one"})
    study = write_study(folder, {"name": "one"}, {"name": "bad", "after": "one"})
    (folder / "bad.py").write_text({"crash": CRASH, "hang": HANG}[kind])
    return study


SAID = {
    "crash": r"^a_bad: round 1: cell \d of 4: bad n=\d: its process ended with code -11; ",
    "hang": r"^a_bad: round 1: cell \d of 4: bad n=\d: took longer than 3 s \(round_limit_s\); ",
    "wrong": r"^a_bad: wrong output of wrong; marked failed in the results$",
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", SAID)
def test_the_rest_is_measured_and_the_command_fails_until_it_is_mended(
    tmp_path: Path, where: Target, measure: Measure, kind: str
) -> None:
    bad = bad_study(tmp_path / "a_bad", kind)
    good = write_study(tmp_path / "good", {"name": "trouble"})
    for _ in range(2):
        with pytest.raises(HotpathError, match=SAID[kind]):
            measure([bad, good])
        assert len(runs_at(where, good)) == 1
        assert measured_rounds(good) == 2
    measure([good])  # the bad one is left out
    name = "wrong" if kind == "wrong" else "bad"
    (bad.folder / f"{name}.py").write_text((bad.folder / "one.py").read_text())
    measure([bad, good])
    assert wrong_variants(bad, where) == []
    measure([bad, good])
    assert len(runs_at(where, good)) == 1


@pytest.mark.usefixtures("quick")
def test_every_bad_study_has_a_line(tmp_path: Path, where: Target, measure: Measure) -> None:
    crash, wrong = bad_study(tmp_path / "a_bad", "crash"), bad_study(tmp_path / "b_bad", "wrong")
    with pytest.raises(HotpathError) as caught:
        measure([crash, wrong])
    first, second = str(caught.value).splitlines()
    assert first.startswith("a_bad: round 1: ")
    assert second == "error: b_bad: wrong output of wrong; marked failed in the results"
    assert len(runs_at(where, wrong)) == 1


def test_a_full_disk_stops_all(
    tmp_path: Path, where: Target, measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that comes later could be kept."""
    full = write_study(tmp_path / "a_bad", {"name": "one"})
    (full.folder / "one.py").write_text(f"import os\nos._exit({os.EX_IOERR})\n")
    good = write_study(tmp_path / "good", {"name": "trouble"})
    with pytest.raises(HotpathError, match="make room"):
        measure([full, good])
    assert measured_rounds(good) == 0


def test_a_wrong_output_of_another_host_or_code_is_not_ours(
    tmp_path: Path, where: Target, measure: Measure
) -> None:
    bad = bad_study(tmp_path / "a_bad", "wrong")
    with pytest.raises(HotpathError):
        measure([bad])
    assert wrong_variants(bad, where) == ["wrong"]
    assert wrong_variants(bad, replace(where, host="12345678")) == []
    (bad.folder / "wrong.py").write_text((bad.folder / "one.py").read_text())
    assert wrong_variants(bad, where) == []
