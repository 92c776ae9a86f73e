"""CPU time and memory that a process may use, in made-up control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from analysis.base.limits import (
    allocatable_bytes,
    allowed_cores,
    cpu_quota,
    parse_cpu_list,
    throttled_periods,
)
from tests.limited import HUGE, QUOTAS, SYSTEMS

ALL = len(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_limit_of_a_group_counts(tmp_path: Path, name: str) -> None:
    assert allocatable_bytes(tmp_path) > HUGE, "nothing is known"
    SYSTEMS[name].write(tmp_path)
    assert allocatable_bytes(tmp_path) == SYSTEMS[name].left


@pytest.mark.parametrize("name", QUOTAS)
def test_the_least_quota_counts(tmp_path: Path, name: str) -> None:
    assert (cpu_quota(tmp_path), throttled_periods(tmp_path)) == (None, None)
    quota, throttled, system = QUOTAS[name]
    system.write(tmp_path)
    assert (cpu_quota(tmp_path), throttled_periods(tmp_path)) == (quota, throttled)
    assert allowed_cores(tmp_path) == (ALL if quota is None else max(1, min(ALL, int(quota))))


def test_a_list_of_cpus_is_read_in_its_order() -> None:
    lists = {"0\n": [0], "0-3,8": [0, 1, 2, 3, 8], "4,36\n": [4, 36], "7-7": [7], "\n": []}
    assert {text: parse_cpu_list(text) for text in lists} == lists
