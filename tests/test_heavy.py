"""Tests that env/check leaves out; the others start no heavy process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from analysis import ROOT
from tests.heavy import is_all_heavy, is_heavy


@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        (["g++", "-c", "a.cpp", "-o", "a.o"], True),
        (["/usr/bin/nvcc", "-cubin", "a.cu"], True),
        ([sys.executable, "-m", "snakemake", "--cores", "2"], True),
        (["/x/playwright/driver/node", "cli.js"], True),
        (["chromium", "--headless"], True),
        (["g++", "--version"], False),
        ([sys.executable, "-m", "analysis.measure.bench"], False),
        (["git", "status"], False),
    ],
)
def test_commands_that_compile_browse_or_run_the_pipeline_are_heavy(
    command: list[str], heavy: bool
) -> None:
    assert is_heavy(command) == heavy


def test_a_test_without_the_mark_may_not_compile() -> None:
    with pytest.raises(pytest.fail.Exception, match="is not marked `heavy`, and starts"):
        subprocess.run(["g++", "-c", "none.cpp"], check=False)


@pytest.mark.parametrize(
    ("name", "heavy"),
    [
        ("workflow/test_rules.py", True),
        ("kernels/unpack/test_charts.py", True),
        ("results/model/test_fit.py", True),
        ("results/model/test_translation.py", False),
        ("test_heavy.py", False),
        ("workflow/pipeline.py", False),
    ],
)
def test_file_with_only_heavy_tests_is_known_unread(name: str, heavy: bool) -> None:
    assert is_all_heavy(ROOT / "tests" / name) == heavy
