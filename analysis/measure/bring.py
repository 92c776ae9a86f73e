"""Bring the results that env/offline has packed on another machine into this checkout.

    python -m analysis.measure.bring my-h100.tar.gz

Every run that is not here yet is added, as if it had been measured here.
"""

from __future__ import annotations

import argparse
import gzip
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Final

from analysis import ROOT
from analysis.base.cli import existing_file, existing_folder, fail_in_one_line, program
from analysis.base.errors import FieldError, HotpathError, visible
from analysis.results.store.copying import copy_runs, missing_runs
from analysis.results.store.runs import MACHINE, NAME, PARTIAL, ignore, machines, read_machine
from analysis.study import discover

LIMIT_BYTES: Final = 256 * 2**20
"""Of an archive, unpacked."""
MAX_MEMBERS: Final = 20_000
"""Of an archive, files and folders together."""
MAX_NAME_BYTES: Final = 4096
"""Of an archive's extensions, which hold long names and exact times."""
_CHUNK_BYTES: Final = 2**20
_DAMAGED: Final = (
    *(tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError),
    *(OverflowError, RecursionError),  # of a time, of a chain of long names
)
_FILE: Final = re.compile(
    rf"results/(?=[^/]{{1,100}}/){MACHINE.pattern}/(?=[^/]{{1,200}}/){NAME.pattern}"
    r"/[A-Za-z0-9][A-Za-z0-9_.-]{0,199}"
)


def unpack(archive: Path, folder: Path) -> None:
    """Write the results in the archive to `folder`; HotpathError for anything else in it.

    The archive is decompressed first, up to LIMIT_BYTES: this also checks its checksum.
    """
    try:
        with gzip.open(archive) as packed, TemporaryFile() as plain:
            while chunk := packed.read(_CHUNK_BYTES):
                if plain.write(chunk) and plain.tell() > LIMIT_BYTES:
                    raise FieldError(f"{archive}", f"at most {LIMIT_BYTES} bytes, unpacked", "more")
            plain.seek(0)
            with tarfile.open(fileobj=plain, mode="r:", tarinfo=_Member) as members:
                for count, member in enumerate(members):
                    if count >= MAX_MEMBERS:
                        raise FieldError(f"{archive}", f"at most {MAX_MEMBERS} members", "more")
                    if member.isdir() or member.name.endswith(PARTIAL):
                        continue
                    is_plain = member.isreg() and not member.issparse()
                    if not (is_plain and _FILE.fullmatch(member.name)):
                        expected = "plain files of results/<machine>/<study>"
                        raise FieldError(f"{archive}", expected, visible(member.name))
                    members.extract(member, folder, filter="data")
    except _DAMAGED as error:
        raise HotpathError(f"{archive}: not an archive of env/offline: {error}") from error


class _Member(tarfile.TarInfo):
    """Refuses a long name or other extension before it is read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        found = super().frombuf(buf, encoding, errors)
        is_plain = found.type in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
        limit = LIMIT_BYTES if is_plain else MAX_NAME_BYTES
        if not 0 <= found.size <= limit:
            what = "a file" if is_plain else "a long name"
            raise ValueError(f"expected {what} of at most {limit} bytes, got {found.size}")
        return found


def bring(archive: Path, results: Path, name: str = "") -> Iterator[str]:
    """Add the runs in the archive to `results`, under `name` if it is given; a line per machine.

    HotpathError if any of its files is wrong, before anything is added.
    """
    with TemporaryDirectory() as work:
        unpack(archive, Path(work))
        measured, studies = Path(work) / "results", discover()
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
