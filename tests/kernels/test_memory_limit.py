"""The C++ copies of `allocatable_bytes`, in the same made-up control groups as Python's."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from analysis.base.limits import allocatable_bytes
from tests.compiled import COMMON, program
from tests.limited import HUGE, SYSTEMS
from tests.tools.reach import SANITIZERS, SOURCE, on_host


@cache
def printing() -> Path:
    folder = Path(__file__).parent
    flags = ["-std=c++17", "-O1", *SANITIZERS]
    return program("memory_limit", [folder / "memory_limit.cpp"], COMMON, flags)


def test_the_probe_has_the_same_text() -> None:
    _, start, text = (COMMON / "memory_limit.h").read_text().partition("namespace memory_limit {")
    assert start + text in SOURCE.read_text()


def by_header(root: Path) -> int:
    done = subprocess.run([printing(), root], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.parametrize("name", SYSTEMS)
def test_all_copies_find_the_same(tmp_path: Path, name: str) -> None:
    SYSTEMS[name].write(tmp_path)
    found = [by_header(tmp_path), *on_host("free", tmp_path), allocatable_bytes(tmp_path)]
    assert found == [SYSTEMS[name].left] * 3


def test_nothing_known_is_no_limit(tmp_path: Path) -> None:
    assert min(by_header(tmp_path), *on_host("free", tmp_path)) > HUGE
