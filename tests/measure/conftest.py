"""Where journals and results of these tests go."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.measure import plan as plans
from analysis.measure.plan import Target


@pytest.fixture(autouse=True)
def build_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Journals go to the test's own folder instead of the repository's."""
    monkeypatch.setattr(plans, "BUILD", tmp_path / "build")
    return tmp_path / "build"


@pytest.fixture
def where(tmp_path: Path) -> Target:
    return Target(tmp_path / "results", "test-box")
