"""Bring the results that env/offline has packed on another machine into this checkout.

    python -m analysis.measure.bring my-h100.tar.gz

Every run that is not here yet is added, as if it had been measured here.
"""

from __future__ import annotations

import argparse
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from analysis import ROOT
from analysis.base.cli import existing_file, existing_folder, fail_in_one_line, program
from analysis.base.errors import FieldError, HotpathError
from analysis.measure.cluster import merge_runs
from analysis.results.store.collect import collect
from analysis.results.store.folders import MACHINE, MACHINE_LIMIT_BYTES, machines
from analysis.study import discover

_FILE: Final = re.compile(rf"results/{MACHINE.pattern}/([a-z][a-z0-9_]*/)?[a-z][a-z0-9_.]*")


def unpack(archive: Path, folder: Path) -> None:
    """Write the results in the archive to `folder`; HotpathError for anything else in it."""
    room = MACHINE_LIMIT_BYTES
    try:
        with tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                if member.isdir():
                    continue
                room -= member.size
                if not (member.isreg() and _FILE.fullmatch(member.name)):
                    raise FieldError(f"{archive}", "plain files of results/<machine>", member.name)
                if room < 0:
                    raise FieldError(f"{archive}", f"at most {MACHINE_LIMIT_BYTES} bytes", "more")
                content = packed.extractfile(member)
                path = folder / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read() if content else b"")
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise HotpathError(f"{archive}: not an archive of env/offline: {error}") from error


def bring(archive: Path, results: Path) -> Iterator[str]:
    """Add the runs in the archive to `results`; a line for each. HotpathError if any of its files
    is wrong, before anything is added."""
    with TemporaryDirectory() as work:
        unpack(archive, Path(work))
        measured = Path(work) / "results"
        found = machines(measured)
        if not found:
            raise FieldError(f"{archive}", "results of a machine", found)
        for reason in collect(measured, discover()).refused.values():
            raise HotpathError(f"{archive}: {reason}")
        for machine in found:
            added = set[str]().union(*merge_runs(measured, results, machine))
            yield f"{machine}: {', '.join(sorted(added)) or 'every run is here already'}"


def command_line() -> argparse.ArgumentParser:
    parser = program("analysis.measure.bring", __doc__)
    parser.add_argument("archives", nargs="+", type=existing_file, help="written by env/offline")
    parser.add_argument(
        "--results", type=existing_folder, default=ROOT / "results", help="where the runs go"
    )
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    for archive in arguments.archives:
        for line in bring(archive, arguments.results):
            print(line)


if __name__ == "__main__":
    fail_in_one_line(main)
