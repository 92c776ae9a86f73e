"""Write which commit set the bounds of claims, from the history of git, to bounds.csv of a study.

python -m analysis.claims kernels/h2d_gather allocator
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import yaml

from analysis.claims.bounds import DIGITS, FILE, BoundRow, comparisons, digests
from analysis.cli import fail_in_one_line
from analysis.errors import HotpathError
from analysis.records import write_records
from analysis.schema import parse_yaml, read_yaml


def set_by(description: Path) -> list[BoundRow]:
    """A row for each claim of a study.yaml whose comparisons are committed. Each of these is as old
    as the first commit from which on, along every way to HEAD that did not drop it, one claim or
    another has had it; the youngest counts."""
    study = read_yaml(description)
    current = comparisons(study)
    kept = {part for parts in current.values() for part in parts}
    since: dict[str, dict[str, tuple[str, str]]] = {}  # of the comparisons, by commit
    newest: dict[str, tuple[str, str]] = {}
    for commit, parents, moment in _commits(description):
        then = comparisons(_at(commit, description))
        newest = since[commit] = {
            part: max(
                (since[parent][part] for parent in parents if part in since[parent]),
                default=(moment, commit[:DIGITS]),
            )
            for parts in then.values()
            if kept.issuperset(parts)
            for part in parts
        }
    rows = []
    for claim, digest in digests(study).items():
        if newest.keys() >= set(current[claim]):
            moment, commit = max(newest[part] for part in current[claim])
            rows.append(BoundRow(claim, digest, commit, moment))
    return rows


def _commits(description: Path) -> Iterator[tuple[str, list[str], str]]:
    """(hash, those before it, time in UTC) of the commits that changed a file, oldest first."""
    form = ["--format=%H,%P,%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"]
    order = ["--topo-order", "--reverse", "--parents"]
    for line in _git(description.parent, "log", *order, *form, "--", description.name):
        commit, parents, moment = line.split(",")
        yield commit, parents.split(), moment


def _at(commit: str, description: Path) -> dict[str, object]:
    """What a study.yaml said at a commit; nothing where it was no valid YAML."""
    lines = _git(description.parent, "show", f"{commit}:./{description.name}")
    try:
        return dict(parse_yaml("\n".join(lines)) or {})
    except yaml.YAMLError:
        return {}


def _git(folder: Path, *arguments: str) -> list[str]:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "TZ": "UTC"}
        )
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise HotpathError(f"{folder}: expected a git checkout: {said.strip()}") from error
    return done.stdout.splitlines()


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m analysis.claims",
        description="Write which commit set the bounds of a study's claims to its bounds.csv.",
    )
    parser.add_argument(
        "folders",
        type=Path,
        nargs="+",
        help="of studies, each with a study.yaml",
    )
    return parser


def main() -> None:
    for folder in command_line().parse_args().folders:
        description = folder / "study.yaml"
        if rows := set_by(description):
            write_records(folder / FILE, BoundRow, rows)
        known = {row.claim for row in rows}
        if new := [claim for claim in digests(read_yaml(description)) if claim not in known]:
            print(f"{description}: commit these claims first: {', '.join(new)}")


if __name__ == "__main__":
    fail_in_one_line(main)
