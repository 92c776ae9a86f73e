"""The history of a machine: points of every committed run, and what changed between them."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.compare.watch import Point, changes, history

STUDY = ROOT / "results" / "nvidia-h200" / "unpack"
VARIANT = "unpack/batch_memcpy"
Commit = Callable[[dict[str, Any]], None]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    folder = tmp_path / "results" / "m"
    (folder / "unpack").mkdir(parents=True)
    for end in (".csv", ".json"):
        shutil.copy(STUDY / f"batch_memcpy{end}", folder / "unpack")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return folder


def commit(machine: Path) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(machine)]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "a run"], check=True)


def test_every_committed_run_is_a_point(machine: Path) -> None:
    commit(machine)
    (first,) = history(machine)[VARIANT]
    provenance = machine / f"{VARIANT}.json"
    entry = json.loads(provenance.read_text())
    assert first.run == entry["run"]
    newer = f"{entry['end'].partition('.')[0]}Z"
    samples = machine / f"{VARIANT}.csv"
    samples.write_text(samples.read_text().replace(entry["run"], newer))
    entry["runs"], entry["run"] = [], newer
    entry["machine"]["driver"] = "999.1"
    provenance.write_text(json.dumps(entry))
    commit(machine)
    old, new = history(machine)[VARIANT]
    assert (old.run, new.run, new.driver) == (first.run, newer, "999.1")
    assert changes([old, new]) == [(newer, "driver")]


def test_changes_name_what_is_new() -> None:
    one = Point("1", 1.0, "gpu_time", "a", "580", "x")
    points = [one, one._replace(run="2", host="b"), one._replace(run="3", driver="590", code="y")]
    assert changes(points) == [("3", "driver and code")]


def test_a_folder_without_history_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(HotpathError, match="history in git"):
        history(tmp_path)
