"""Check files of results alone: names, keys, checksums, samples, and the kind of machine.

python -m analysis.results.check results/my-h100/h2d_gather/*

Prints what is wrong with each file. A file stands for all files of its run or capture.
"""

from __future__ import annotations

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
        study, machine = about.parent, about.parents[1]
        try:
            if study not in study_folders(machine.parent):
                raise FieldError(f"{study}", "a folder <machine>/<study>", study.name)
            host = read(about, studies.get(study.name)).about.host
            if machine not in newest:
                newest[machine] = newest_host(machine, without=[*described]) or host
            require_same_kind(host, machine, str(about), newest[machine])
        except FAULTS as error:
            is_foreseen = isinstance(error, HotpathError | OSError)
            yield visible(str(error) if is_foreseen else f"{about}: {error!r}")


def main() -> None:
    parser = program("analysis.results.check", __doc__)
    parser.add_argument("files", nargs="+", type=Path, help="files of runs or captures")
    files = parser.parse_args().files
    found = list(faults(files, discover()))
    print("".join(f"{line}\n" for line in found), end="")
    print(f"{len(files)} files, {len(found)} faults", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    fail_in_one_line(main)
