"""Tests that env/check leaves out."""

from __future__ import annotations

from analysis import ROOT
from tests.heavy import is_heavy


def test_a_file_is_heavy_by_what_it_imports() -> None:
    files = ("workflow/test_rules.py", "tools/test_reach.py", "base/test_files.py")
    assert [is_heavy(ROOT / "tests" / name) for name in files] == [True, True, False]
