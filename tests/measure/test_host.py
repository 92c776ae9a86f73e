"""The host: its speed, its other load, its description, its lock, and the commit of the code."""

import ctypes
import os
import re
import subprocess
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from analysis.base.errors import FieldError, HotpathError
from analysis.measure import cpu, machine
from analysis.measure.cpu import conditions, cores, flush, flush_rows, use_cpus
from analysis.measure.machine import (
    COMMIT_VARIABLE,
    FOLDER_VARIABLE,
    Commit,
    commit_of,
    describe,
    host_id,
    slug,
    whole_machine,
)
from analysis.results.store.keys import UNKNOWN_HOST
from tests.compiled import use_built_library
from tests.limited import QUOTAS
from tests.measure.studies import GPU
from tests.waiting import wait_for


@pytest.mark.parametrize("others", [0.5, 3.0])
def test_cores_that_others_use_are_busy(monkeypatch: pytest.MonkeyPatch, others: float) -> None:
    """This process keeps one of eight cores busy while it measures."""
    monkeypatch.setattr(psutil, "cpu_count", lambda: 8)
    monkeypatch.setattr(psutil, "cpu_percent", lambda: 100 * (1 + others) / 8)
    monkeypatch.setattr(time, "process_time", time.perf_counter)
    use_built_library(monkeypatch)
    found = conditions()
    assert found.busy_share == pytest.approx(others / 8, abs=0.01)
    assert 1e8 < found.copy_bytes_per_s < 1e12


def test_hosts_differ_without_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {host_id([GPU]), host_id([replace(GPU, uuid="GPU-2")])}
    assert len(names) == 2
    assert all(re.fullmatch("[0-9a-f]{8}", name) for name in names)
    monkeypatch.setattr(machine, "MACHINE_ID", tmp_path / "id")
    assert host_id([]) == UNKNOWN_HOST
    (tmp_path / "id").write_text("secret\n")
    assert host_id([]) not in (UNKNOWN_HOST, "secret", *names)
    assert slug("NVIDIA H100 80GB HBM3 (ü)") == "nvidia-h100-80gb-hbm3"


def test_the_processor_its_quota_its_caches_and_linked_packages_are_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"vendor_id": "GenuineIntel", "cpu family": "6", "model": "143", "stepping": "8"}
    monkeypatch.setattr(machine, "_cpu", lambda: fields)
    monkeypatch.setattr(machine, "IOMMUS", (tmp_path / "none", tmp_path))
    package = tmp_path / "librmm_cu13-26.10.0.dist-info" / "METADATA"
    package.parent.mkdir()
    package.write_text("Name: librmm-cu13\nVersion: 26.10.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    quota, _, system = QUOTAS["less than a core"]
    system.write(tmp_path / "quota")
    for name in ("allowed_cores", "cpu_quota"):
        known = getattr(machine, name)
        monkeypatch.setattr(machine, name, lambda known=known: known(tmp_path / "quota"))
    host = describe([])
    assert (host.cpu_id, host.iommu) == ("GenuineIntel 6-143-8", True)
    assert host.libraries["librmm-cu13"] == "26.10.0"
    assert (host.limits.cores, host.limits.cpu_quota) == (1, quota)
    (tmp_path / "index0").mkdir()
    for name, text in {"level": "2", "type": "Unified", "size": "2048K"}.items():
        (tmp_path / "index0" / name).write_text(text)
    assert machine._cpu_caches(tmp_path) == {"L2_unified_bytes": 2 * 2**20}
    fields.clear()
    assert "cpu_id" in describe([]).unsupported


def test_a_quota_counts_as_fewer_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.sched_getaffinity(0)
    try:
        for allowed in (1000, 1):
            order = cores()
            monkeypatch.setattr(cpu, "allowed_cores", partial(min, allowed, len(before)))
            use_cpus(before)
            assert cores() == order[:allowed]
    finally:
        os.sched_setaffinity(0, before)


def test_a_second_measurement_is_refused_or_waits_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    entered = threading.Event()

    def second() -> None:
        with whole_machine("wait", "measuring another"):
            entered.set()

    waiting = threading.Thread(target=second)
    with whole_machine("wait", "measuring one"):
        refused = pytest.raises(HotpathError, match=r"busy: .*: measuring one, since 2")
        with refused, whole_machine("refuse", "measuring another"):
            pass
        waiting.start()
        wait_for(lambda: "waiting: this machine is in use by" in capsys.readouterr().out)
        assert not entered.is_set()
    waiting.join()
    assert entered.is_set()


def test_a_checkout_has_a_commit_that_only_changed_code_makes_dirty(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A kill leaves no lock, as the index stays as it is. A copy is not of the repository that it
    lies in."""
    for name in (COMMIT_VARIABLE, "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "none"))
    tree = tmp_path / "tree"
    for folder in ("results", "unpacked"):
        (tree / folder).mkdir(parents=True)
    (tree / "code").write_text("1")
    author = ("-c", "user.name=me", "-c", "user.email=me@here")
    for command in (["init", "-q"], ["add", "code"], [*author, "commit", "-q", "-m", "One"]):
        subprocess.run(["git", "-C", str(tree), *command], check=True)
    (tree / "results" / "box").write_text("")
    index = (tree / ".git" / "index").read_bytes()
    os.utime(tree / "code", (1, 1))
    found = commit_of(tree)
    assert found.name and len(found.name) == 40 and found.dirty is False
    assert (tree / ".git" / "index").read_bytes() == index
    (tree / "code").write_text("2")
    assert commit_of(tree) == Commit(found.name, dirty=True)

    assert commit_of(tree / "unpacked") == Commit()
    assert "not a git repository" in capfd.readouterr().err
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert commit_of(tree) == Commit()
    assert "git config --global --add safe.directory" in capfd.readouterr().err
    monkeypatch.setenv("PATH", str(tree))
    assert commit_of(tree) == Commit()
    monkeypatch.setenv(COMMIT_VARIABLE, "abc")
    assert commit_of(tree) == Commit("abc", dirty=False)
    monkeypatch.setenv(COMMIT_VARIABLE, "feature/x")
    with pytest.raises(FieldError, match=f"^{COMMIT_VARIABLE}: .* got 'feature/x'"):
        commit_of(tree)


CHUNK = cpu._CHUNK


def test_every_row_is_handed_over_once_and_keeps_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    use_built_library(monkeypatch)
    pieces: list[int] = []

    class Library:
        @staticmethod
        def flush_pieces(base: int, indices: int, count: int, stride: int, size: int) -> None:
            assert (stride, size) == (100, 40)
            found = (ctypes.c_int64 * count).from_address(indices)
            pieces.extend((base + index * stride) for index in found)

    for size in (0, 1, 63, 64, 65, 4096, CHUNK, 2 * CHUNK + 1):
        whole = np.random.default_rng(size).integers(0, 256, size + 7, np.uint8)
        part = whole[5 : 5 + size]  # begins and ends within a line
        incremented = part + np.uint8(1)
        part += np.uint8(1)
        flush(part)
        assert np.array_equal(part, incremented)
    monkeypatch.setattr(cpu, "_CHUNK", 64)  # several threads
    table = np.random.default_rng(1).integers(0, 256, (50, 100), np.uint8)
    monkeypatch.setattr(cpu, "_library", Library)
    flush_rows(table[:, :40], np.random.default_rng(2).permutation(50))
    assert sorted(pieces) == [table.ctypes.data + 100 * row for row in range(50)]
