"""Files that are whole at any moment, and locks that the kernel releases when their holder ends.

A crash leaves the old file or the new one, never a part.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from analysis.base.errors import HotpathError, visible

if TYPE_CHECKING:
    from filelock import FileLock

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
        expected, got = (f"{size / MIB:.3g} MiB" for size in (ROOM_BYTES, free))
        raise HotpathError(f"{there}: expected {expected} of free space, got {got}; make room")


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder, a folder in one step; nothing where there is none.

    A crash may leave a hidden remainder of a folder, which the next call removes.
    """
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    gone = path.with_name(f".{path.name}.gone")
    shutil.rmtree(gone, ignore_errors=True)
    path.rename(gone)
    shutil.rmtree(gone)


def take(path: Path, holder: str, held: Callable[[str], None]) -> FileLock:
    """Lock the file `path`, which any user may lock, and write `holder` into it. The lock is free
    once it is released or no longer referred to.

    While another process holds the lock: call `held` once with its text, then wait. HotpathError if
    the file cannot be used.
    """
    from filelock import FileLock, Timeout  # slow to import

    def write(file: int) -> None:
        os.ftruncate(file, 0)
        os.pwrite(file, holder.encode(), 0)

    lock = FileLock(path, 0, 0o666, fallback_to_soft=False, on_acquired=write)
    try:
        if path.exists() and not path.is_file():
            raise HotpathError(f"{path}: cannot be locked: not a file")
        try:
            lock.acquire()
        except Timeout:
            text = path.read_bytes()[:300].decode(errors="replace")  # any user's
            held(visible(text) or "another process")
            lock.acquire(-1, poll_interval=0.5)
    except OSError as error:
        raise HotpathError(f"{path}: cannot be locked: {error.strerror}") from error
    return lock
