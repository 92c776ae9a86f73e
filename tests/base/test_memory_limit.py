"""Memory that a process may still allocate, in made-up control groups."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from analysis.base.memory_limit import allocatable_bytes
from tests.limited import HUGE, SYSTEMS


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_limit_of_a_group_counts(tmp_path: Path, name: str) -> None:
    SYSTEMS[name].write(tmp_path)
    assert allocatable_bytes(tmp_path) == SYSTEMS[name].left


def test_nothing_known_is_no_limit(tmp_path: Path) -> None:
    assert allocatable_bytes(tmp_path) > HUGE


def test_this_process_may_allocate_at_most_what_the_system_has() -> None:
    assert 0 < allocatable_bytes() <= psutil.virtual_memory().total
