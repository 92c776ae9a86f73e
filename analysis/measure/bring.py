"""Bring the results that env/offline has packed on another machine into this checkout.

    python -m analysis.measure.bring my-h100.zip

Every run that is not here yet is added, as if it had been measured here.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from analysis import ROOT
from analysis.base.cli import existing_file, existing_folder, fail_in_one_line, program
from analysis.base.errors import FieldError, HotpathError
from analysis.results.store.copying import copy_runs
from analysis.results.store.runs import machines
from analysis.study import discover

ARCHIVE_LIMIT_BYTES: Final = 32 * 2**20
"""Of an archive: its list of files is read whole."""
LIMIT_BYTES: Final = 256 * 2**20
"""Of an archive, unpacked."""
_DAMAGED: Final = (BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, OSError)


def unpack(archive: Path, folder: Path) -> None:
    """Write the files in the archive below `folder`; HotpathError if they are too large."""
    if (size := archive.stat().st_size) > ARCHIVE_LIMIT_BYTES:
        raise FieldError(f"{archive}", f"at most {ARCHIVE_LIMIT_BYTES} bytes", size)
    try:
        with ZipFile(archive) as packed:
            # Other methods may need any amount of memory.
            if {one.compress_type for one in packed.infolist()} - {ZIP_STORED, ZIP_DEFLATED}:
                raise FieldError(f"{archive}", "deflated files", "others")
            if (size := sum(one.file_size for one in packed.infolist())) > LIMIT_BYTES:
                raise FieldError(f"{archive}", f"at most {LIMIT_BYTES} bytes, unpacked", size)
            packed.extractall(folder)
    except _DAMAGED as error:
        raise HotpathError(f"{archive}: cannot be unpacked: {error}") from error


def bring(archive: Path, results: Path, name: str = "") -> list[str]:
    """Add the runs in the archive to `results`, under `name` if it is given; a line for each.

    HotpathError if any of its files is wrong, before anything is added.
    """
    with TemporaryDirectory() as work:
        unpack(archive, Path(work))
        found = machines(Path(work))
        if len(found) != 1 and (name or not found):
            raise FieldError(f"{archive}", "results of one machine", found)
        copied = copy_runs(Path(work), results, discover(), name)
    return [path.relative_to(results).as_posix() for path in copied] or ["nothing new"]


def main() -> None:
    parser = program("analysis.measure.bring", __doc__)
    parser.add_argument("archives", nargs="+", type=existing_file, help="written by env/offline")
    parser.add_argument(
        "--results", type=existing_folder, default=ROOT / "results", help="where the runs go"
    )
    parser.add_argument("--as", dest="name", default="", help="another name for the machine")
    arguments = parser.parse_args()
    for archive in arguments.archives:
        for line in bring(archive, arguments.results, arguments.name):
            print(line)


if __name__ == "__main__":
    fail_in_one_line(main)
