"""Quotas of CPU time, in made-up control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from analysis.base.cpu_quota import allowed_cores, cpu_quota, throttled_periods
from tests.limited import QUOTAS

ALL = len(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", QUOTAS)
def test_the_least_quota_counts(tmp_path: Path, name: str) -> None:
    quota, throttled, system = QUOTAS[name]
    system.write(tmp_path)
    assert cpu_quota(tmp_path) == quota
    assert throttled_periods(tmp_path) == throttled
    assert allowed_cores(tmp_path) == (ALL if quota is None else max(1, min(ALL, int(quota))))


def test_nothing_known_is_no_quota(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None
    assert throttled_periods(tmp_path) is None
    assert allowed_cores(tmp_path) == ALL
