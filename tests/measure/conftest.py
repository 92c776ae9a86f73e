"""Rounds that take little time and disturb nothing, and a place for their results."""

import multiprocessing
from pathlib import Path

import pytest

from analysis.measure import plan as plans
from analysis.measure.plan import Place
from analysis.study import Study
from tests.measure.studies import QUIET, write_study


@pytest.fixture(autouse=True)
def build_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of journals. Other processes of the host count as quiet, rounds are forked, and
    nothing is warmed up."""
    monkeypatch.setattr(plans, "BUILD", tmp_path / "build")
    monkeypatch.setattr("analysis.measure.run.conditions", lambda: QUIET)
    context = multiprocessing.get_context("fork")
    monkeypatch.setattr(context, "set_forkserver_preload", lambda names: None, raising=False)
    monkeypatch.setattr(multiprocessing, "get_context", lambda name: context)
    monkeypatch.setattr("analysis.measure.round.WARM_UP_S", 0.0001)
    return tmp_path / "build"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "results", "test-box", cuda="13.0")


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study of two variants, of which the first counts its rounds."""
    return write_study(tmp_path / "study", {"name": "trouble"}, {"name": "one", "after": "trouble"})
