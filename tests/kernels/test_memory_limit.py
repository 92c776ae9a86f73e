"""The C++ copies of `allocatable_bytes`, in the same made-up control groups as Python's."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from analysis.base.memory_limit import allocatable_bytes
from tests.compiled import COMMON, program
from tests.limited import HUGE, SYSTEMS
from tests.tools.reach import on_host


@cache
def printing() -> Path:
    folder = Path(__file__).parent
    flags = ["-std=c++17", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    return program("memory_limit", [folder / "memory_limit.cpp"], COMMON, flags)


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
