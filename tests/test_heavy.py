"""Tests that env/check leaves out; the others start no heavy process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from analysis import ROOT
from tests.heavy import is_heavy


@pytest.mark.parametrize(
    "command", [["g++", "-c", "none.cpp"], [sys.executable, "-m", "snakemake", "--help"]]
)
def test_a_test_without_the_mark_starts_nothing_heavy(command: list[str]) -> None:
    with pytest.raises(pytest.fail.Exception, match="is not marked `heavy`, and starts"):
        subprocess.run(command, check=False)


@pytest.mark.parametrize(
    ("name", "heavy"),
    [
        ("workflow/test_rules.py", True),  # the pipeline
        ("tools/test_reach.py", True),  # a helper compiles
        ("test_heavy.py", False),
        ("base/test_files.py", False),
    ],
)
def test_a_file_is_heavy_by_what_it_imports(name: str, heavy: bool) -> None:
    assert is_heavy(ROOT / "tests" / name) == heavy
