"""Measure machines of a cluster: each run has a node and a tree to itself.

python -m analysis.measure.cluster measure MACHINE CONFIG RUN
python -m analysis.measure.cluster merge MACHINE CONFIG

CONFIG is JSON with overrides of config.yaml. `measure` is for the node. It runs the ordinary
pipeline in a copy of the sources: nodes share no file. Run `n` measures what has fewer than `n`
fresh runs. `merge` copies the runs of a machine into the results.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis import BUILD, ROOT
from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.base.files import remove, write_whole
from analysis.measure.bring import copy_runs
from analysis.measure.machine import COMMIT_VARIABLE, commit_of
from analysis.results.store.runs import discard_superfluous
from analysis.study.config import Config, Machine, load_config

MADE = frozenset({"build", "results", ".snakemake"})
"""Made in each tree, which keeps them from one measurement to the next."""
NOT_COPIED = MADE | {"site", ".git", ".venv", ".uv", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


def tree_of(machine: str, run: int) -> Path:
    """Where that run of a machine is measured."""
    return BUILD / "machines" / machine / str(run)


def measure(config: Config, overrides: Mapping[str, Any], machine: Machine, run: int) -> None:
    """Measure on this node what the run still lacks. HotpathError if something failed."""
    of_this_run = {"machine": machine.name, "machines": [], "runs": run}
    if machine.gpus:  # no others that the node has
        of_this_run["gpu"] = list(range(machine.gpus))
    copy_sources(tree := tree_of(machine.name, run))
    known = config.results / machine.name
    if known.is_dir():  # it measures what they lack
        results = tree / known.relative_to(ROOT)
        shutil.copytree(known, results, symlinks=True, dirs_exist_ok=True)
    # A scheduler may have bound its one task to one of the CPUs; the whole node is ours.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    settings_file = tree / "build" / "settings.json"
    write_whole(settings_file, json.dumps({**overrides, **of_this_run}))
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "measure", "profile"]
    command += ["--configfile", str(settings_file)]
    # The commit is that of the sources, and of nothing where they differ from it.
    commit = commit_of(ROOT)
    named = {COMMIT_VARIABLE: commit.name} if commit.name and not commit.dirty else {}
    if subprocess.run(command, cwd=tree, env={**os.environ, **named}, check=False).returncode:
        raise HotpathError(f"{machine.name}: run {run} failed, see above and {tree}/build/logs")


def copy_sources(tree: Path) -> None:
    """Make `tree` the sources of this repository. What was built and measured in it stays."""
    for old in tree.iterdir() if tree.exists() else ():
        if old.name not in MADE:
            remove(old)

    def not_copied(folder: str, names: list[str]) -> set[str]:
        return {*names} & NOT_COPIED if Path(folder) == ROOT else {"__pycache__"}

    shutil.copytree(ROOT, tree, symlinks=True, ignore=not_copied, dirs_exist_ok=True)


def merge(config: Config, machine: Machine) -> Iterator[str]:
    """Put what the nodes have measured into the machine's results, and delete what is superfluous
    then; a line for each run."""
    for run in range(1, machine.runs + 1):
        measured = tree_of(machine.name, run) / config.results.relative_to(ROOT)
        copied = copy_runs(measured, config.results, config.studies)
        names = ", ".join(f"{path.parent.name}/{path.name}" for path in copied)
        yield f"{machine.name}: run {run}: {names or 'nothing new'}"
    for study in config.studies.values():
        discard_superfluous(config.results / machine.name / study.name, study)


def main(what: str, name: str, overrides: str, run: str = "") -> None:
    config = load_config(given := json.loads(overrides))
    machine = next(machine for machine in config.machines if machine.name == name)
    if what == "measure":
        measure(config, given, machine, int(run))
    else:
        print("\n".join(merge(config, machine)))


if __name__ == "__main__":
    fail_in_one_line(lambda: main(*sys.argv[1:]))
