"""Check files of results alone: names, keys, checksums, samples, and the kind of machine.

python -m analysis.results.check results/my-h100/h2d_gather/*

Prints what is wrong with each file. A file stands for all files of its run or capture.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import FieldError, HotpathError, visible
from analysis.results.store.copying import require_same_kind
from analysis.results.store.keys import HostKeys
from analysis.results.store.runs import (
    FAULTS,
    description_of,
    newest_host,
    read,
    study_folders,
)
from analysis.study import Study, discover


def faults(files: Sequence[Path], studies: Mapping[str, Study]) -> Iterator[str]:
    """A line for each of `files` that is wrong, or that belongs to no run and no capture."""
    described: dict[Path, None] = {}
    for path in files:
        try:
            about = description_of(path)
            if not about.exists():
                raise HotpathError(f"{path}: expected {about.name} beside it, got none")
            described[about] = None
        except HotpathError as error:
            yield visible(str(error))
    newest: dict[Path, HostKeys] = {}
    for about in described:
        folder = about.parents[1]
        try:
            if about.parent not in study_folders(folder.parent):
                raise FieldError(f"{about.parent}", "a folder <machine>/<study>", about.parent.name)
            host = read(about, studies.get(about.parent.name)).about.host
            if folder not in newest:
                newest[folder] = newest_host(folder, without=[*described]) or host
            require_same_kind(host, folder, str(about), newest[folder])
        except FAULTS as error:
            is_foreseen = isinstance(error, HotpathError | OSError)
            yield visible(str(error) if is_foreseen else f"{about}: {error!r}")


def command_line() -> argparse.ArgumentParser:
    parser = program("analysis.results.check", __doc__)
    parser.add_argument("files", nargs="+", type=Path, help="files of runs or captures")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    found = list(faults(arguments.files, discover()))
    for line in found:
        print(line)
    print(f"{len(arguments.files)} files, {len(found)} faults", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    fail_in_one_line(main)
