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


def test_a_file_is_heavy_by_what_it_imports() -> None:
    files = ("workflow/test_rules.py", "tools/test_reach.py", "base/test_files.py")
    assert [is_heavy(ROOT / "tests" / name) for name in files] == [True, True, False]
