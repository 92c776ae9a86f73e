"""File locks that the kernel releases when their holder ends, even if it was killed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from analysis.base.errors import HotpathError, visible


def take(path: Path, holder: str, held: Callable[[str], None]) -> FileLock:
    """Lock the file `path`, which any user may lock, and write `holder` into it. The lock is free
    once it is released or no longer referred to.

    While another process holds the lock: call `held` once with its text, then wait. HotpathError if
    the file cannot be used.
    """

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
