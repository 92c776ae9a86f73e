"""Files in a folder of results, found by names and kinds of files, without following a link or
opening anything.

<root>/<machine>/<study>/<run>.csv, .json, .telemetry.csv
<root>/<machine>/<study>/<run>.<kind>.csv, .json          kind = counters or timeline
<root>/published/<study>.csv
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from analysis.base.errors import FieldError
from analysis.base.reading import require_folder
from analysis.results.store.keys import RUN
from analysis.study import CAPTURE_KINDS
from analysis.study import NAME as NAME

PUBLISHED: Final = "published"
MACHINE: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
ABOUT: Final = (".json", *(f".{kind}.json" for kind in CAPTURE_KINDS))
"""How a file ends that describes others and is written after them."""
DESCRIBED_BY: Final = {
    **{suffix: suffix for suffix in ABOUT},
    **{suffix.replace(".json", ".csv"): suffix for suffix in ABOUT},
    ".telemetry.csv": ABOUT[0],
}
"""How the files of a study end, and for each how its description does."""
PARTIAL: Final = ".partial"
"""How a file ends that is not yet written; an interrupted run may leave one."""
MAX_FILES: Final = 64
"""Maximum number of runs of a study on a machine, and of its captures of a kind."""


def listed(folder: Path) -> list[Path]:
    """Content of a folder, in alphabetical order, without what an interrupted run left half
    written; nothing where it is none, or a link to one."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix != PARTIAL)


def machine_folders(root: Path) -> list[Path]:
    """All entries under `root` in the place of machines' folders, valid or not."""
    return [path for path in listed(root) if not _is_plain(path) and path.name != PUBLISHED]


def machines(root: Path) -> list[str]:
    """Names of the machines under `root`, in alphabetical order."""
    found = (path for path in machine_folders(root) if MACHINE.fullmatch(path.name))
    return [path.name for path in found if listed(path)]


def require_named(folder: Path, pattern: re.Pattern[str]) -> None:
    """HotpathError unless it is a folder with a name of a machine, MACHINE, or a study, NAME."""
    if not pattern.fullmatch(folder.name):
        raise FieldError(f"{folder}", f"a name of the form {pattern.pattern}", folder.name)
    require_folder(folder)


def run_of(path: Path) -> str:
    """The run of a file of a study by its name."""
    return path.name.partition(".")[0]


def _suffix(path: Path) -> str:
    return path.name.removeprefix(run_of(path))


def description_of(path: Path) -> Path:
    """The description that a file of a study belongs to; FieldError for another file."""
    about = DESCRIBED_BY.get(_suffix(path))
    if about is None or not RUN.fullmatch(run_of(path)):
        raise FieldError(f"{path}", f"<run> and one of {', '.join(DESCRIBED_BY)}", path.name)
    return path.with_name(run_of(path) + about)


def described(folder: Path, suffix: str = ABOUT[0]) -> list[Path]:
    """The descriptions of runs in a study's folder, or those of captures, newest first."""
    paths = reversed(listed(folder))
    return [path for path in paths if RUN.fullmatch(run_of(path)) and _suffix(path) == suffix]


def plain_files(root: Path) -> Iterator[Path]:
    """Every file under `root` that can be results by its name and place, none through a link."""
    for machine in machines(root):
        for study in listed(root / machine):
            is_study = NAME.fullmatch(study.name)
            for path in listed(study) if is_study else ():
                if RUN.fullmatch(run_of(path)) and _suffix(path) in DESCRIBED_BY:
                    yield from [path] if _is_plain(path) else []
    for path in listed(root / PUBLISHED):
        if NAME.fullmatch(path.stem) and path.suffix == ".csv" and _is_plain(path):
            yield path


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
