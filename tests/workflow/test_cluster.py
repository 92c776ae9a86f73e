"""Machines of a cluster are measured on nodes of a real Slurm and published together."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from analysis.results.store.runs import read_runs
from tests.workflow.pipeline import copy_of_pipeline
from tests.workflow.slurm import missing, started

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
    pytest.importorskip("snakemake_executor_plugin_slurm")  # env/run installs it beside a Slurm
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

    summary = (copy / "build" / "summary.csv").read_text()
    for machine, count in (("small-box", 1), ("large-box", 2)):
        runs = [*read_runs(copy / "results" / machine / "calls", None)]
        statuses = {row.status for run in runs for row in run.rows if row.variant == "python"}
        assert (len(runs), statuses) == (count, {"ok"})
        assert machine in (copy / "site" / "machines" / "index.html").read_text()
        assert re.search(rf"^{machine},calls,python,", summary, re.MULTILINE)
        # Each run was built and measured in a separate tree.
        for run in range(1, count + 1):
            tree = copy / "build" / "machines" / machine / str(run)
            assert [*tree.glob("build/modules/*/calls/compiled.so")]
            assert [path.name for path in (tree / "results").iterdir()] == [machine]
    # The checkout that started Snakemake measured nothing.
    assert not (copy / "build" / "rounds").exists()
    # A machine is an exclusive node, and requests GPUs only if it has some.
    lines = jobs.stdout.splitlines()
    assert all("OverSubscribe=NO" in job for job in lines)
    assert sorted(re.findall(r" Partition=(\w+)", jobs.stdout)) == ["first", "second", "second"]
    for job in lines:
        assert ("gres:gpu:1" in job) == ("Partition=second" in job)
        assert ("Features=small" in job) == ("Partition=first" in job)
