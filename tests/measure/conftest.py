"""Folders of journals and results of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.measure import plan as plans
from analysis.measure import run as runs
from analysis.measure.conditions import Conditions
from analysis.measure.plan import Target

QUIET = Conditions(spin_s=0.006, copy_bytes_per_s=14e9, cpu_mhz=2100.0, busy_share=0.0, steal_s=1.0)


@pytest.fixture(autouse=True)
def build_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Redirect journals to the folder of the test."""
    monkeypatch.setattr(plans, "BUILD", tmp_path / "build")
    return tmp_path / "build"


@pytest.fixture(autouse=True)
def quiet_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore other processes, which would disturb the rounds of these tests."""
    for name in ("conditions", "recent_conditions"):
        monkeypatch.setattr(runs, name, lambda: QUIET)


@pytest.fixture
def where(tmp_path: Path) -> Target:
    return Target(tmp_path / "results", "test-box")
