"""Machines of a cluster are measured on nodes of a real Slurm and published together."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from analysis.results.store.runs import read_runs
from tests.workflow.pipeline import copy_of_pipeline
from tests.workflow.slurm import PLUGIN, missing, started

MACHINES = [
    {"name": "small-box", "partition": "first", "constraint": "small", "mem_mb": 2000},
    {"name": "large-box", "partition": "second", "gpus": 1, "runs": 2, "mem_mb": 2000},
]
COMMAND = [
    *(sys.executable, "-m", "snakemake", "--profile", "workflow/profiles/slurm"),
    *("--slurm-no-account", "--slurm-init-seconds-before-status-checks", "1"),
]


@pytest.mark.long
def test_one_command_measures_and_publishes_every_machine(tmp_path: Path) -> None:
    if importlib.util.find_spec(PLUGIN) is None:
        pytest.skip(f"{PLUGIN}: not installed (env/run installs it where there is a Slurm)")
    if why := missing():
        pytest.skip(why)
    copy = copy_of_pipeline(tmp_path / "hotpath")
    for other in ("copy", "strides"):
        shutil.rmtree(copy / "kernels" / other)
        (copy / "docs" / "studies" / f"{other}.md").unlink()
    (copy / "results" / "published" / "copy.csv").unlink()
    (copy / "config" / "machines.yaml").write_text(yaml.safe_dump({"machines": MACHINES}))
    with started(tmp_path / "slurm") as environment:
        settings = {"env": environment, "capture_output": True, "text": True, "check": False}
        done = subprocess.run(COMMAND, cwd=copy, **settings)  # type: ignore[call-overload]
        jobs = subprocess.run(["scontrol", "show", "job", "--oneliner"], **settings)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "small-box: run 1: calls/" in done.stdout + done.stderr

    summary = (copy / "build" / "summary.csv").read_text()
    for machine, runs in (("small-box", 1), ("large-box", 2)):
        found = [*read_runs(copy / "results" / machine / "calls", None)]
        rows = [row for run in found for row in run.rows if row.variant == "python"]
        assert {row.status for row in rows} == {"ok"}
        assert len(found) == runs
        assert machine in (copy / "site" / "machines" / "index.html").read_text()
        assert re.search(rf"^{machine},calls,python,", summary, re.MULTILINE)
        # Each run was built and measured in a separate tree.
        for run in range(1, runs + 1):
            tree = copy / "build" / "machines" / machine / str(run)
            assert [*tree.glob("build/modules/*/calls/compiled.so")]
            assert [path.name for path in (tree / "results").iterdir()] == [machine]
    # The checkout that started Snakemake measured nothing.
    assert not (copy / "build" / "rounds").exists()

    # A machine is an exclusive node, and requests GPUs only if it has some.
    by_partition: dict[str, list[str]] = {}
    for job in jobs.stdout.splitlines():
        by_partition.setdefault(re.findall(r" Partition=(\w+)", job)[0], []).append(job)
        assert "OverSubscribe=NO" in job
    assert {name: len(found) for name, found in by_partition.items()} == {"first": 1, "second": 2}
    assert all("gres:gpu:1" in job for job in by_partition["second"])
    assert not any("gres:gpu" in job for job in by_partition["first"])
    assert all("Features=small" in job for job in by_partition["first"])
