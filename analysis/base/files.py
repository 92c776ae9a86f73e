"""Files that are whole at any moment: a crash leaves the old one or the new one, never a part."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from analysis.base.errors import HotpathError

MIB: Final = 2**20
ROOM_BYTES: Final = 32 * MIB
"""Space that a run may need for results, their journal and logs."""


def write_whole(path: Path, text: str) -> None:
    """Make or replace a file in one step. OSError leaves the old file."""
    write_all({path: text})


def write_all(texts: Mapping[Path, str]) -> None:
    """Make or replace files, each in one step, and none before there is room for all of them.

    OSError names the file and leaves the old one.
    """
    partial = {path: path.with_name(f".{path.name}.partial") for path in texts}
    path = Path()
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial[path].open("w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        for path in texts:
            partial[path].replace(path)
    except OSError as error:
        for written in filter(Path.is_file, partial.values()):
            written.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def require_room(folder: Path) -> None:
    """HotpathError unless `folder`, or the one it is to be made in, can be written to."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise HotpathError(f"{there}: cannot be written to; use a copy that you can write to")
    if (free := shutil.disk_usage(there).free) < ROOM_BYTES:
        raise HotpathError(
            f"{there}: expected {ROOM_BYTES / MIB:g} MiB of free space, got {free / MIB:.3g} MiB; "
            "make room, then run the same command again"
        )


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder; nothing where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_together(folder: Path) -> None:
    """Remove a folder and its content in one step. A crash may leave a hidden remainder, which
    the next call removes."""
    gone = folder.with_name(f".{folder.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone)


def put_in_place(made: Path, folder: Path) -> None:
    """Move the folder `made` to `folder` and drop the previous content, in one step each."""
    if folder.exists():
        remove_together(folder)
    made.rename(folder)
