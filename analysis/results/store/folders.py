"""Files in a folder of results, found by names and kinds of files, without following a
link or opening anything.

<root>/<machine>/machine.json
<root>/<machine>/<study>/<variant>.csv, .json, .telemetry.csv ...
<root>/published/<study>.csv
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from analysis.base.errors import HotpathError
from analysis.base.reading import LIMIT_BYTES, require_folder, require_plain
from analysis.study import NAME as NAME

PUBLISHED: Final = "published"
DESCRIPTION: Final = "machine.json"
MACHINE: Final = re.compile(r"[a-z0-9-]+")
KINDS: Final = (".csv", ".json", ".telemetry.csv", ".ncu.csv", ".timeline.csv")
"""How the files of a variant end; the first is its samples."""
PARTIAL: Final = ".partial"
"""How a file ends that is not yet written; an interrupted run may leave one."""
MACHINE_LIMIT_BYTES: Final = LIMIT_BYTES


def machines(root: Path) -> list[str]:
    """Names of the machines under `root`, in alphabetical order."""
    found = (path for path in machine_folders(root) if MACHINE.fullmatch(path.name))
    return [path.name for path in found if listed(path)]


def machine_folders(root: Path) -> Iterator[Path]:
    """All entries under `root` in the place of machines' folders, valid or not."""
    for path in listed(root):
        is_file = stat.S_ISREG(path.lstat().st_mode)
        if not is_file and path.name != PUBLISHED:
            yield path


def is_empty(folder: Path) -> bool:
    """Whether `folder` is an empty folder."""
    return stat.S_ISDIR(folder.lstat().st_mode) and not listed(folder)


def check_machine(folder: Path) -> None:
    """HotpathError unless `folder` has the name of a machine and at most MACHINE_LIMIT_BYTES."""
    require_name(folder, MACHINE, folder.name)
    require_folder(folder)
    if (size := size_of(folder)) > MACHINE_LIMIT_BYTES:
        raise HotpathError(f"{folder}: expected at most {MACHINE_LIMIT_BYTES} bytes, got {size}")


def size_of(folder: Path) -> int:
    """Bytes of all files of a machine, including those that do not belong there."""
    folders = [folder, *study_folders(folder)]
    entries = [path.lstat() for one in folders for path in listed(one)]
    return sum(entry.st_size for entry in entries if not stat.S_ISDIR(entry.st_mode))


def study_folders(folder: Path) -> Iterator[Path]:
    """All entries of a machine's folder in the place of studies' folders, valid or not."""
    yield from (path for path in listed(folder) if path.name != DESCRIPTION)


def samples_files(folder: Path) -> list[Path]:
    """The samples files of a study's folder.

    HotpathError unless everything in it is a plain file that belongs to one of them.
    """
    require_name(folder, NAME, folder.name)
    require_folder(folder)
    files = listed(folder)
    for path in files:
        require_plain(path, path.lstat())
        variant, _, kind = path.name.partition(".")
        require_name(path, NAME, variant)
        if f".{kind}" not in KINDS:
            raise HotpathError(f"{path}: expected <variant> and one of {KINDS}, got {path.name!r}")
        if not path.with_name(variant + KINDS[0]).exists():
            raise HotpathError(f"{path}: its samples {variant}{KINDS[0]} are missing")
    return [path for path in files if path.name.partition(".")[1:] == (".", KINDS[0][1:])]


def variant_files(root: Path, machine: str) -> Iterator[Path]:
    """The samples files of a machine; HotpathError as of `samples_files`."""
    for folder in study_folders(root / machine):
        yield from samples_files(folder)


def plain_files(root: Path) -> Iterator[Path]:
    """Every file under `root` that can be results by its name and place, none through a link."""
    for machine in machines(root):
        folder = root / machine
        inner = [path for path in study_folders(folder) if NAME.fullmatch(path.name)]
        files = [folder / DESCRIPTION, *(path for one in inner for path in listed(one))]
        yield from (path for path in files if _is_result(path))
    yield from (path for path in listed(root / PUBLISHED) if _is_result(path))


def _is_result(path: Path) -> bool:
    """Whether it is a plain file with the name of a file of results."""
    name, _, kind = path.name.partition(".")
    is_named = bool(NAME.fullmatch(name)) and f".{kind}" in KINDS
    return is_named and path.exists() and stat.S_ISREG(path.lstat().st_mode)


def require_name(path: Path, pattern: re.Pattern[str], name: str) -> None:
    if not pattern.fullmatch(name):
        raise HotpathError(f"{path}: expected a name of the form {pattern.pattern}, got {name!r}")


def listed(folder: Path) -> list[Path]:
    """Content of a folder, in alphabetical order, without what an interrupted run left half
    written; nothing where it is none, or a link to one."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix != PARTIAL)
