"""The C++ copy of `allocatable_bytes`, in the same made-up control groups as Python's."""

from pathlib import Path

import pytest

from analysis.base.limits import allocatable_bytes
from tests.compiled import COMMON
from tests.limited import HUGE, SYSTEMS
from tests.tools.reach import SOURCE, on_host


def test_the_header_and_the_probe_have_the_same_text() -> None:
    _, start, text = (COMMON / "memory_limit.h").read_text().partition("namespace memory_limit {")
    assert start + text in SOURCE.read_text()


@pytest.mark.parametrize("name", SYSTEMS)
def test_all_copies_find_the_same(tmp_path: Path, name: str) -> None:
    SYSTEMS[name].write(tmp_path)
    assert [*on_host("free", tmp_path), allocatable_bytes(tmp_path)] == 2 * [SYSTEMS[name].left]


def test_nothing_known_is_no_limit(tmp_path: Path) -> None:
    assert on_host("free", tmp_path)[0] > HUGE
