"""CPUs that a round uses, where a quota allows less than all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.measure import cores as module
from analysis.measure import machine
from analysis.measure.cores import cores, use_cpus
from analysis.measure.machine import describe
from tests.limited import QUOTAS


@pytest.fixture
def cpus() -> Iterator[set[int]]:
    """The CPUs of this process, which gets them back."""
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("needs two CPUs")
    yield before
    os.sched_setaffinity(0, before)


@pytest.mark.parametrize(("allowed", "used"), [(1, 1), (2, 2), (1000, 1000)])
def test_a_quota_counts_as_fewer_cores(
    cpus: set[int], monkeypatch: pytest.MonkeyPatch, allowed: int, used: int
) -> None:
    order = cores()
    monkeypatch.setattr(module, "allowed_cores", lambda: min(allowed, len(cpus)))
    use_cpus(cpus)
    assert cores() == order[:used]


def test_the_quota_is_in_the_provenance(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    quota, _, system = QUOTAS["less than a core"]
    system.write(tmp_path)
    for name in ("allowed_cores", "cpu_quota"):
        known = getattr(machine, name)
        monkeypatch.setattr(machine, name, lambda known=known: known(tmp_path))
    limits = describe([]).limits
    assert (limits.cores, limits.cpu_quota) == (1, quota)
