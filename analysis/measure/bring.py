"""Bring the results that env/offline has packed on another machine into this checkout.

    python -m analysis.measure.bring my-h100.zip

Every run that is not here yet is added, as if it had been measured here.
"""

from __future__ import annotations

import argparse
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from analysis import ROOT
from analysis.base.cli import existing_file, existing_folder, fail_in_one_line, program
from analysis.base.errors import FieldError, HotpathError, visible
from analysis.results.store.copying import copy_runs, missing_runs
from analysis.results.store.runs import MACHINE, NAME, PARTIAL, ignore, machines, read_machine
from analysis.study import discover

ARCHIVE_LIMIT_BYTES: Final = 32 * 2**20
"""Of an archive: its list of files is read whole."""
LIMIT_BYTES: Final = 256 * 2**20
"""Of an archive, unpacked."""
_METHODS: Final = (ZIP_STORED, ZIP_DEFLATED)
"""The others may need any amount of memory."""
_DAMAGED: Final = (BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)
_FILE: Final = re.compile(
    rf"(?=[^/]{{1,100}}/){MACHINE.pattern}/(?=[^/]{{1,200}}/){NAME.pattern}"
    r"/[A-Za-z0-9][A-Za-z0-9_.-]{0,199}"
)


def unpack(archive: Path, folder: Path) -> None:
    """Write the results in the archive to `folder`; HotpathError for anything else in it."""
    if (size := archive.stat().st_size) > ARCHIVE_LIMIT_BYTES:
        raise FieldError(f"{archive}", f"at most {ARCHIVE_LIMIT_BYTES} bytes", size)
    left = LIMIT_BYTES
    try:
        with ZipFile(archive) as packed:
            for member in packed.infolist():
                if member.is_dir() or member.filename.endswith(PARTIAL):
                    continue
                if not _FILE.fullmatch(member.filename) or member.compress_type not in _METHODS:
                    expected = "files <machine>/<study>/<file>, deflated"
                    raise FieldError(f"{archive}", expected, visible(member.filename))
                with packed.open(member) as file:
                    content = file.read(left + 1)  # to its end, where its checksum is compared
                left -= len(content)
                if left < 0:
                    raise FieldError(f"{archive}", f"at most {LIMIT_BYTES} bytes, unpacked", "more")
                path = folder / member.filename
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    except _DAMAGED as error:
        raise HotpathError(f"{archive}: not an archive of env/offline: {error}") from error


def bring(archive: Path, results: Path, name: str = "") -> Iterator[str]:
    """Add the runs in the archive to `results`, under `name` if it is given; a line per machine.

    HotpathError if any of its files is wrong, before anything is added.
    """
    with TemporaryDirectory() as work:
        unpack(archive, Path(work))
        measured, studies = Path(work), discover()
        found = machines(measured)
        if len(found) != 1 and (name or not found):
            raise FieldError(f"{archive}", "results of one machine", found)
        new = {one: missing_runs(measured, results, one, studies, name) for one in found}
        for machine, runs in new.items():
            if not runs and not any(read_machine(measured / machine, studies, ignore)):
                raise FieldError(f"{archive}", f"runs of {machine}", "none")
        for machine, runs in new.items():
            added = ", ".join(copy_runs(runs))
            yield f"{name or machine}: {added or 'every run is here already'}"


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
