"""Files in a folder of results, found by names and kinds of files, without following a link or
opening anything.

<root>/<machine>/<study>/<run>.csv, .json, .telemetry.csv
<root>/<machine>/<study>/<run>.<kind>.csv, .json          kind = counters or timeline
<root>/published/<study>.csv
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from analysis.base.errors import HotpathError
from analysis.base.reading import require_folder
from analysis.results.store.keys import RUN
from analysis.study import CAPTURE_KINDS
from analysis.study import NAME as NAME

PUBLISHED: Final = "published"
MACHINE: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
ABOUT: Final = (".json", *(f".{kind}.json" for kind in CAPTURE_KINDS))
"""How a file ends that describes others and is written after them."""
SUFFIXES: Final = (*ABOUT, ".csv", ".telemetry.csv", *(f".{kind}.csv" for kind in CAPTURE_KINDS))
"""How the files of a study end."""
PARTIAL: Final = ".partial"
"""How a file ends that is not yet written; an interrupted run may leave one."""
MAX_FILES: Final = 64
"""Maximum number of runs of a study on a machine, and of its captures of a kind."""


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


def require_machine(folder: Path) -> None:
    """HotpathError unless it is a folder with the name of a machine."""
    _require_name(folder, MACHINE)


def require_study(folder: Path) -> None:
    """HotpathError unless it is a folder with the name of a study."""
    _require_name(folder, NAME)


def _require_name(folder: Path, pattern: re.Pattern[str]) -> None:
    if not pattern.fullmatch(folder.name):
        expected = f"a name of the form {pattern.pattern}"
        raise HotpathError(f"{folder}: expected {expected}, got {folder.name!r}")
    require_folder(folder)


def run_and_suffix(path: Path) -> tuple[str, str]:
    """The run and the suffix of a file of a study; HotpathError for another name."""
    run, _, suffix = path.name.partition(".")
    if not RUN.fullmatch(run) or f".{suffix}" not in SUFFIXES:
        expected = f"<run> and one of {', '.join(SUFFIXES)}"
        raise HotpathError(f"{path}: expected {expected}, got {path.name!r}")
    return run, f".{suffix}"


def described(folder: Path, suffix: str = ABOUT[0]) -> list[Path]:
    """The descriptions of runs in a study's folder, or those of captures, newest first."""
    return [path for path in reversed(listed(folder)) if _is_named(path, (suffix,))]


def plain_files(root: Path) -> Iterator[Path]:
    """Every file under `root` that can be results by its name and place, none through a link."""
    for machine in machines(root):
        inner = [path for path in listed(root / machine) if NAME.fullmatch(path.name)]
        files = (path for one in inner for path in listed(one) if _is_named(path, SUFFIXES))
        yield from (path for path in files if stat.S_ISREG(path.lstat().st_mode))
    for path in listed(root / PUBLISHED):
        is_named = NAME.fullmatch(path.stem) and path.suffix == ".csv"
        if is_named and stat.S_ISREG(path.lstat().st_mode):
            yield path


def _is_named(path: Path, suffixes: tuple[str, ...]) -> bool:
    run, _, suffix = path.name.partition(".")
    return bool(RUN.fullmatch(run)) and f".{suffix}" in suffixes


def listed(folder: Path) -> list[Path]:
    """Content of a folder, in alphabetical order, without what an interrupted run left half
    written; nothing where it is none, or a link to one."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix != PARTIAL)
