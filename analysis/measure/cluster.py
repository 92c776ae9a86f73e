"""Measure machines of a cluster: each run has a node and a tree to itself.

python -m analysis.measure.cluster measure MACHINE RUN --config JSON
python -m analysis.measure.cluster merge MACHINE --config JSON

`measure` is for the node. It runs the ordinary pipeline in a copy of the sources, where modules are
built, what is pending is found out and results are written: nodes share no file. `merge` puts the
runs of a machine into the results, one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis import BUILD, ROOT
from analysis.base.cli import at_least, fail_in_one_line, program, settings
from analysis.base.errors import HotpathError, require_known
from analysis.base.files import write_all, write_whole
from analysis.measure.commit import COMMIT_VARIABLE, commit_of
from analysis.results.store.folders import variant_files
from analysis.results.store.results import Draft, load_variant
from analysis.results.store.samples import KEPT_RUNS
from analysis.study.config import Config, Machine, load_config
from analysis.study.source import fingerprint

NOT_COPIED = frozenset({"build", "results", "site", ".git", ".snakemake", ".venv", ".uv"})
"""Not copied into a tree: each tree makes these, or does not need them."""
KEPT = frozenset({"build", "results", ".snakemake"})
"""Folders among these that a tree keeps from one measurement to the next."""


def tree_of(machine: str, run: int) -> Path:
    """Where that run of a machine is measured."""
    return BUILD / "machines" / machine / str(run)


def measure(config: Config, overrides: Mapping[str, Any], machine: str, run: int) -> None:
    """Measure on this node what the run still lacks. HotpathError if something failed."""
    tree, several = tree_of(machine, run), _several_gpus(config, machine)
    copy_sources(tree)
    take_over(config, machine, run)
    # A scheduler may have bound its one task to one of the CPUs; the whole node is ours.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    settings_file = tree / "build" / "settings.json"
    of_this_run = {"machine": machine, "machines": [], **several}
    write_whole(settings_file, json.dumps({**overrides, **of_this_run}))
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "measure", "profile"]
    command += ["--configfile", str(settings_file)]
    print(f"{machine}: run {run} on {os.uname().nodename}", flush=True)
    if subprocess.run(command, cwd=tree, env=_environment(), check=False).returncode:
        raise HotpathError(f"{machine}: run {run} failed, see above and {tree}/build/logs")


def _machine(config: Config, name: str) -> Machine:
    """A machine in the configuration; FieldError lists the configured ones."""
    known = {machine.name: machine for machine in config.machines}
    require_known("machine", name, sorted(known))
    return known[name]


def _several_gpus(config: Config, machine: str) -> dict[str, list[int]]:
    """The setting of all GPUs of a node that is asked for with more than one."""
    asked = _machine(config, machine).gpus
    return {"gpu": list(range(asked))} if asked > 1 else {}


def _environment() -> dict[str, str]:
    """The commit is that of the sources, and of nothing where they differ from it."""
    commit = commit_of(ROOT)
    known = {COMMIT_VARIABLE: commit.name} if commit.name and not commit.dirty else {}
    return {**os.environ, **known}


def copy_sources(tree: Path) -> None:
    """Make `tree` the sources of this repository. What was built and measured in it stays."""
    tree.mkdir(parents=True, exist_ok=True)
    for old in tree.iterdir():
        if old.name not in KEPT:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    for entry in ROOT.iterdir():
        target = tree / entry.name
        if entry.name in NOT_COPIED or entry.name.endswith("_cache"):
            continue
        if entry.is_symlink() or entry.is_file():
            shutil.copy2(entry, target, follow_symlinks=False)
        else:
            shutil.copytree(
                entry, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
            )


def take_over(config: Config, machine: str, run: int) -> None:
    """Give the tree of `run` the results of variants that have this run already."""
    tree = tree_of(machine, run)
    results = tree / config.results.relative_to(ROOT)
    for path in variant_files(config.results, machine):
        study = config.studies.get(path.parent.name)
        target = results / path.relative_to(config.results)
        if study is None or path.stem not in study.variant_names or target.exists():
            continue
        source = fingerprint(study, study.variant(path.stem))
        if len(load_variant(path).fresh_runs(source)) >= run:
            target.parent.mkdir(parents=True, exist_ok=True)
            for file in path.parent.glob(f"{path.stem}.*"):
                shutil.copy2(file, target.parent)


def merge(config: Config, machine: str) -> Iterator[str]:
    """Put what the nodes have measured into the machine's results; a line for each new run."""
    for run in range(1, _machine(config, machine).runs + 1):
        measured = tree_of(machine, run) / config.results.relative_to(ROOT)
        for added in merge_runs(measured, config.results, machine):
            yield f"{machine}: run {run}: {', '.join(sorted(added))}"


def merge_runs(measured: Path, results: Path, machine: str) -> Iterator[set[str]]:
    """Add to each variant the runs that the results lack, the oldest first; yields the studies that
    got one, after each write."""
    lacking = {path: _lacking(path, results, measured) for path in variant_files(measured, machine)}
    for place in range(max(map(len, lacking.values()), default=0)):
        draft = Draft(results, machine)
        added = set()
        for path, runs in lacking.items():
            if place < len(runs):
                study, new, run = path.parent.name, load_variant(path), runs[place]
                samples = [sample for sample in new.samples if sample.run == run]
                draft.add_run(study, path.stem, samples, new.run_provenance()[run])
                for extra in path.parent.glob(f"{path.stem}.*.csv"):
                    draft.put(f"{study}/{extra.name}", extra.read_text())
                added.add(study)
        draft.put("machine.json", (measured / machine / "machine.json").read_text())
        draft.shrink()
        write_all({results / name: text for name, text in draft.texts.items()})
        yield added


def _lacking(path: Path, results: Path, measured: Path) -> list[str]:
    """Runs of a variant that the results lack, oldest first.

    If these have as many runs as are kept, runs older than theirs of the same host may be runs that
    were dropped, and are left out.
    """
    there = results / path.relative_to(measured)
    had = load_variant(there).run_provenance() if there.exists() else {}
    runs = load_variant(path).run_provenance()
    latest: dict[str | None, str] = {}
    if len(had) >= KEPT_RUNS:
        for run, entry in reversed(had.items()):
            latest[entry["machine"].get("host")] = run
    return [
        run
        for run, entry in reversed(runs.items())
        if run not in had and run > latest.get(entry["machine"].get("host"), "")
    ]


def command_line() -> argparse.ArgumentParser:
    parser = program("analysis.measure.cluster", __doc__)
    parser.add_argument("what", choices=["measure", "merge"], help="on the node, or afterwards")
    parser.add_argument("machine", help="its name in the configuration")
    parser.add_argument("run", nargs="?", type=at_least(1), default=1, help="the number of the run")
    parser.add_argument("--config", type=settings, default={}, help="overrides, as JSON")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    config = load_config(arguments.config)
    if arguments.what == "measure":
        measure(config, arguments.config, arguments.machine, arguments.run)
    else:
        for line in merge(config, arguments.machine):
            print(line)


if __name__ == "__main__":
    fail_in_one_line(main)
