"""Bring the results that env/offline has packed on another machine into this checkout.

    python -m analysis.measure.bring my-h100.zip

Every run that is not here yet is added, as if it had been measured here.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import BadZipFile, ZipFile

from analysis import ROOT
from analysis.base import keys
from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import write_all
from analysis.base.reading import read_json, read_text
from analysis.results.check import require_same_kind
from analysis.results.store import runs
from analysis.results.store.keys import text_of
from analysis.study import Study, discover
from analysis.study.config import MachineName

LIMIT_BYTES: Final = 256 * 2**20
"""Of an archive, unpacked."""


def copy_runs(
    source: Path, results: Path, studies: Mapping[str, Study], name: str = ""
) -> list[Path]:
    """Copy the runs and captures in `source` that `results` lacks, there under the machine `name`,
    by default its own. Returns their new descriptions.

    HotpathError, before anything is copied, for a bad file, for one that belongs to no run, for a
    run that `results` has with another content, and for another kind of machine.
    """
    texts: dict[Path, Mapping[Path, str]] = {}
    for here in runs.study_folders(source):
        machine = keys.read(MachineName, name or here.parent.name, "name of the machine")
        there = results / machine / here.name
        newest = runs.newest_host(there.parent) or runs.newest_host(here.parent)
        for path in runs.listed(here):
            new = there / path.name
            if new.exists() and path.suffix == ".json":
                ours, theirs = (read_json(one, runs.JSON_LIMIT_BYTES) for one in (new, path))
                if ours != {**theirs, "machine": machine}:
                    expected = f"the content of {new}, or another name, see --as"
                    raise FieldError(f"{path}", expected, "another")
            if new.exists() or runs.description_of(path) != path:
                continue
            about = runs.read(path, studies.get(here.name)).about
            require_same_kind(about.host, there.parent, f"{path}", newest)
            about.machine = machine
            beside = {there / file: read_text(here / file) for file in about.files}
            texts[new] = {**beside, new: text_of(about)}
    for files in texts.values():
        write_all(files)
    return sorted(texts)


def bring(archive: Path, results: Path, name: str = "") -> list[str]:
    """Add the runs in the archive to `results`, under `name` if it is given; a line for each.
    HotpathError, before anything is added, if the archive or any of its new files is wrong."""
    with TemporaryDirectory() as folder:
        source = Path(folder)
        try:
            with ZipFile(archive) as packed:
                if (size := sum(one.file_size for one in packed.infolist())) > LIMIT_BYTES:
                    raise FieldError(f"{archive}", f"at most {LIMIT_BYTES} bytes, unpacked", size)
                packed.extractall(source)
        except (BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, OSError) as error:
            raise HotpathError(f"{archive}: cannot be unpacked: {error}") from error
        found = runs.machines(source)
        if len(found) != 1 and (name or not found):
            raise FieldError(f"{archive}", "results of one machine", found)
        try:
            copied = copy_runs(source, results, discover(), name)
        except HotpathError as error:
            raise HotpathError(str(error).replace(f"{source}/", f"{archive}: ")) from None
    return [path.relative_to(results).as_posix() for path in copied] or ["nothing new"]


def main() -> None:
    parser = program("analysis.measure.bring", __doc__)
    parser.add_argument("archives", nargs="+", type=Path, help="written by env/offline")
    parser.add_argument("--as", dest="name", default="", help="another name for the machine")
    arguments = parser.parse_args()
    for archive in arguments.archives:
        print("\n".join(bring(archive, ROOT / "results", arguments.name)))


if __name__ == "__main__":
    fail_in_one_line(main)
