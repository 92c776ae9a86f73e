"""Bring the results that env/offline has packed on another machine into this checkout.

    python -m analysis.measure.bring my-h100.tar.gz

Every run that is not here yet is added, as if it had been measured here.
"""

from __future__ import annotations

import argparse
import re
import tarfile
import zlib
from collections.abc import Iterator
from gzip import BadGzipFile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from analysis import ROOT
from analysis.base.cli import existing_file, existing_folder, fail_in_one_line, program
from analysis.base.errors import FieldError, HotpathError
from analysis.results.store.copying import copy_runs
from analysis.results.store.folders import MACHINE, PARTIAL, machines
from analysis.study import discover

LIMIT_BYTES: Final = 256 * 2**20
"""Of the unpacked files of an archive."""
_FILE: Final = re.compile(rf"results/{MACHINE.pattern}/[a-z][a-z0-9_]*/[A-Za-z0-9][A-Za-z0-9_.-]*")


def unpack(archive: Path, folder: Path) -> None:
    """Write the results in the archive to `folder`; HotpathError for anything else in it."""
    room = LIMIT_BYTES
    try:
        with tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                if member.isdir() or member.name.endswith(PARTIAL):
                    continue
                room -= member.size
                if not (member.isreg() and _FILE.fullmatch(member.name)):
                    expected = "plain files of results/<machine>/<study>"
                    raise FieldError(f"{archive}", expected, member.name)
                if room < 0:
                    raise FieldError(f"{archive}", f"at most {LIMIT_BYTES} bytes", "more")
                packed.extract(member, folder, filter="data")
    except (tarfile.TarError, BadGzipFile, zlib.error, EOFError, ValueError) as error:
        raise HotpathError(f"{archive}: not an archive of env/offline: {error}") from error


def bring(archive: Path, results: Path, name: str = "") -> Iterator[str]:
    """Add the runs in the archive to `results`, under `name` if it is given; a line per machine.

    HotpathError if any of its files is wrong, before anything is added.
    """
    with TemporaryDirectory() as work:
        unpack(archive, Path(work))
        measured = Path(work) / "results"
        found = machines(measured)
        if len(found) != 1 and (name or not found):
            raise FieldError(f"{archive}", "results of one machine", found)
        for machine in found:
            added = list(copy_runs(measured, results, machine, discover(), name))
            yield f"{name or machine}: {', '.join(added) or 'every run is here already'}"


def command_line() -> argparse.ArgumentParser:
    parser = program("analysis.measure.bring", __doc__)
    parser.add_argument("archives", nargs="+", type=existing_file, help="written by env/offline")
    parser.add_argument(
        "--results", type=existing_folder, default=ROOT / "results", help="where the runs go"
    )
    parser.add_argument("--as", dest="name", default="", help="another name for the machine")
    return parser


def main() -> None:
    arguments = command_line().parse_args()
    for archive in arguments.archives:
        for line in bring(archive, arguments.results, arguments.name):
            print(line)


if __name__ == "__main__":
    fail_in_one_line(main)
