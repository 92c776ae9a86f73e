"""Conditions of a host: its speed, its other load, and a name that identifies it."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from analysis.base.gpu import Gpu
from analysis.measure import conditions as looking
from analysis.measure import machine
from analysis.measure.conditions import conditions, recent_conditions, steal_seconds
from analysis.measure.machine import host_id
from analysis.results.store.keys import UNKNOWN_HOST

GPU = Gpu(None, "GPU", "GPU-1", 0, "sm_90", "")


def test_a_host_has_a_speed() -> None:
    found = conditions()
    assert 1e-4 < found.spin_s < 1
    assert 1e8 < found.copy_bytes_per_s < 1e12
    assert 0 <= found.busy_share <= 1
    assert found.steal_s >= 0
    assert found.core_hz is None or 5e8 < found.core_hz < 1e10


@pytest.mark.parametrize("others", [0.5, 3.0])
def test_only_cores_that_others_use_count_as_busy(
    monkeypatch: pytest.MonkeyPatch, others: float
) -> None:
    """This process keeps one of eight cores busy while it measures."""
    monkeypatch.setattr(psutil, "cpu_count", lambda: 8)
    monkeypatch.setattr(psutil, "cpu_percent", lambda: 100 * (1 + others) / 8)
    monkeypatch.setattr(time, "process_time", time.perf_counter)
    assert conditions().busy_share == pytest.approx(others / 8, abs=0.01)


def test_a_recent_look_is_used_again_and_an_old_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = conditions()
    assert recent_conditions() is first
    monkeypatch.setattr(looking, "RECENT_S", 0.0)
    second = recent_conditions()
    assert second is not first
    monkeypatch.setattr(looking, "RECENT_S", 60.0)
    assert recent_conditions() is second


def test_stolen_time_is_read_in_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 900 3 0 1 250 0 0\ncpu0 1 2 3\n")
    assert steal_seconds(stat) == 2.5
    stat.write_text("cpu  100 0 50 900\n")
    assert steal_seconds(stat) == 0.0


def test_hosts_are_distinguished_without_revealing_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [host_id([GPU]), host_id([replace(GPU, uuid="GPU-2")])]
    assert len(set(names)) == 2
    assert all(name and re.fullmatch("[0-9a-f]{8}", name) for name in names)
    assert host_id([replace(GPU, index=3), replace(GPU, uuid="GPU-2")]) == names[0]
    monkeypatch.setattr(machine, "MACHINE_IDS", (tmp_path / "id",))
    assert host_id([]) == UNKNOWN_HOST
    (tmp_path / "id").write_text("secret\n")
    assert host_id([]) not in (UNKNOWN_HOST, "secret", *names)
