"""Machines of a cluster are measured on nodes of a real Slurm and published together."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
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


def reason() -> str:
    """Return why these tests cannot run here, or an empty text."""
    if importlib.util.find_spec(PLUGIN) is None:
        return f"{PLUGIN}: not installed (env/run installs it where there is a Slurm)"
    return missing()


@dataclass
class Cluster:
    """The repository after one command measured and published it, the output of the command, and
    Slurm's records of its jobs."""

    copy: Path
    output: str
    jobs: list[str]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if why := reason():
        pytest.skip(why)
    copy = copy_of_pipeline(tmp_path_factory.mktemp("copy") / "hotpath")
    for other in ("copy", "strides"):
        shutil.rmtree(copy / "kernels" / other)
        (copy / "docs" / "studies" / f"{other}.md").unlink()
    (copy / "results" / "published" / "copy.csv").unlink()
    (copy / "config" / "machines.yaml").write_text(yaml.safe_dump({"machines": MACHINES}))
    with started(tmp_path_factory.mktemp("slurm")) as environment:
        done = subprocess.run(
            COMMAND,
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        shown = subprocess.run(
            ["scontrol", "show", "job", "--oneliner"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    assert done.returncode == 0, done.stdout
    yield Cluster(copy, done.stdout, shown.stdout.splitlines())


@pytest.mark.long
def test_one_command_measures_and_publishes_every_machine(cluster: Cluster) -> None:
    for machine, runs in (("small-box", 1), ("large-box", 2)):
        found = [*read_runs(cluster.copy / "results" / machine / "calls", None)]
        rows = [row for run in found for row in run.rows if row.variant == "python"]
        assert {row.status for row in rows} == {"ok"}
        assert len(found) == runs
        assert machine in (cluster.copy / "site" / "machines" / "index.html").read_text()
        summary = (cluster.copy / "build" / "summary.csv").read_text()
        assert re.search(rf"^{machine},calls,python,", summary, re.MULTILINE)
    assert "small-box: run 1: calls/" in cluster.output


@pytest.mark.long
def test_a_machine_is_an_exclusive_node_and_requests_gpus_only_if_it_has_some(
    cluster: Cluster,
) -> None:
    by_partition: dict[str, list[str]] = {}
    for job in cluster.jobs:
        found = re.search(r" Partition=(\w+)", job)
        assert found is not None
        by_partition.setdefault(found[1], []).append(job)
        assert "OverSubscribe=NO" in job
    assert {name: len(jobs) for name, jobs in by_partition.items()} == {"first": 1, "second": 2}
    assert all("gres:gpu:1" in job for job in by_partition["second"])
    assert not any("gres:gpu" in job for job in by_partition["first"])
    assert all("Features=small" in job for job in by_partition["first"])


@pytest.mark.long
def test_each_run_was_built_and_measured_in_a_separate_tree(cluster: Cluster) -> None:
    trees = cluster.copy / "build" / "machines"
    for machine, run in (("small-box", 1), ("large-box", 1), ("large-box", 2)):
        tree = trees / machine / str(run)
        assert [path.name for path in tree.glob("build/modules/*/calls/compiled.so")]
        assert [path.name for path in (tree / "results").iterdir()] == [machine]
    # The checkout that started Snakemake measured nothing.
    assert not (cluster.copy / "build" / "rounds").exists()
