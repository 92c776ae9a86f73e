"""Files that are whole at any moment: a crash leaves the old one or the new one, never a part."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Make or replace a file in one step. OSError leaves what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_together(folder: Path, texts: Mapping[str, str]) -> None:
    """Make a folder with all of its files, by their paths in it, in one step."""
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    for name, text in texts.items():
        write_whole(partial / name, text)
    partial.rename(folder)


def remove_together(folder: Path) -> None:
    """Remove a folder with all that is in it in one step. A crash may leave a hidden remainder,
    which the next call removes."""
    gone = folder.with_name(f".{folder.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    folder.rename(gone)
    shutil.rmtree(gone)
