"""The program for the tables of one study."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from analysis.base.errors import FieldError
from analysis.results.tables.of_study import main


def test_a_study_that_is_predicted_needs_the_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["h2d_gather", "--results", str(tmp_path), "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", ["of_study", *arguments])
    with pytest.raises(FieldError, match=r"--links: expected a file, as h2d_gather is predicted"):
        main()


def test_modules_of_fits_and_tests_are_not_imported() -> None:
    """Every job of the pipeline would wait for it; these two take longer than most studies."""
    imports = "import analysis.results.tables.of_study, analysis.site.charts.__main__, sys"
    slow = "{'scipy.stats', 'scipy.optimize'} & set(sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", f"{imports}; print({slow})"], capture_output=True, text=True
    )
    assert found.stdout.strip() == "set()", found.stderr
