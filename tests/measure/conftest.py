"""Folders of journals and results of these tests."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path

import pytest

from analysis.measure import plan as plans
from analysis.measure import run as runs
from analysis.measure.conditions import Conditions
from analysis.measure.plan import Plan, Target
from analysis.study import Study
from tests.measure.studies import GRID, HERE, host, write_study

NAMES = ("trouble", "one")
"""Variants of the made-up study."""
QUIET = Conditions(spin_s=0.006, copy_bytes_per_s=14e9, cpu_mhz=2100.0, busy_share=0.0, steal_s=1.0)


@pytest.fixture(autouse=True)
def build_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Redirect journals to the folder of the test."""
    monkeypatch.setattr(plans, "BUILD", tmp_path / "build")
    return tmp_path / "build"


@pytest.fixture(autouse=True)
def quiet_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore other processes, which would disturb the rounds of these tests, and save the time to
    measure the host."""
    for name in ("publish.recent_conditions", "run.recent_conditions", "run.conditions"):
        monkeypatch.setattr(f"analysis.measure.{name}", lambda: QUIET)


@pytest.fixture(autouse=True, scope="package")
def short_warm_up() -> Iterator[None]:
    """Start another fork server, with a short warm-up: host code needs no raised clocks."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
    multiprocessing.get_context("forkserver").set_forkserver_preload(
        ["analysis.measure.round", "tests.measure.short_warm_up"]
    )
    forkserver.ensure_running()
    yield
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


@pytest.fixture
def where(tmp_path: Path) -> Target:
    return Target(tmp_path / "results", "test-box")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that take milliseconds: processes are forked, and nothing is warmed up."""
    context = multiprocessing.get_context("fork")
    monkeypatch.setattr(context, "set_forkserver_preload", lambda names: None, raising=False)
    monkeypatch.setattr(multiprocessing, "get_context", lambda name: context)
    monkeypatch.setattr("analysis.measure.round.WARM_UP_S", 0.0001)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    first, second = NAMES
    return write_study(tmp_path / "study", {"name": first}, {"name": second, "after": first})


@pytest.fixture
def finished(quick: None, study: Study, where: Target, build_folder: Path) -> Plan:
    """A plan all of whose rounds are in its journal."""
    plan = Plan(study, study.variants, GRID, where)
    runs.run_rounds(plan, HERE, host(build_folder))
    return plan
