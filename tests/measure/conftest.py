"""Folders of journals and results of these tests, and rounds that take little time."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from analysis.measure import plan as plans
from analysis.measure.places import Place
from analysis.study import Study
from tests.measure.studies import QUIET, write_study


@pytest.fixture(autouse=True)
def build_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Redirect journals to the folder of the test."""
    monkeypatch.setattr(plans, "BUILD", tmp_path / "build")
    return tmp_path / "build"


@pytest.fixture(autouse=True)
def quiet_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore other processes, which would disturb the rounds of these tests."""
    monkeypatch.setattr("analysis.measure.run.conditions", lambda: QUIET)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that take milliseconds: processes are forked, and nothing is warmed up."""
    context = multiprocessing.get_context("fork")
    monkeypatch.setattr(context, "set_forkserver_preload", lambda names: None, raising=False)
    monkeypatch.setattr(multiprocessing, "get_context", lambda name: context)
    monkeypatch.setattr("analysis.measure.round.WARM_UP_S", 0.0001)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "results", "test-box", cuda="13.0")


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study of two variants, of which the first counts its rounds."""
    return write_study(tmp_path / "study", {"name": "trouble"}, {"name": "one", "after": "trouble"})
