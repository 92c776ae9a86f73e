"""File locks that the kernel releases when their holder ends, even if it was killed."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from analysis.base.errors import HotpathError

_EVERYBODY: Final = 0o666
_MAX_HOLDER_BYTES: Final = 300


def take(path: Path, holder: str, held: Callable[[str], None]) -> int:
    """Lock the file `path`, which any user may lock, and write `holder` into it.

    While another process holds the lock: call `held` once with its text, then wait. Closing the
    returned descriptor releases the lock; other programs do not inherit it. HotpathError if the
    file cannot be used.
    """
    while True:
        file = _open(path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held(_holder(file))
            fcntl.flock(file, fcntl.LOCK_EX)
        if _is_still(path, file):
            os.ftruncate(file, 0)
            os.pwrite(file, holder.encode()[:_MAX_HOLDER_BYTES], 0)
            return file
        os.close(file)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with suppress(FileExistsError):
            # Created by a separate call: in a sticky folder the kernel refuses O_CREAT on
            # another user's file.
            made = os.open(path, flags | os.O_CREAT | os.O_EXCL, _EVERYBODY)
            os.fchmod(made, _EVERYBODY)  # whatever the umask is
            os.close(made)
        file = os.open(path, flags)
    except OSError as error:
        raise HotpathError(f"{path}: cannot be locked: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise HotpathError(f"{path}: cannot be locked: not a file")
    return file


def _is_still(path: Path, file: int) -> bool:
    """Whether `path` is still the locked file; another process may have removed it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), path.stat())
    return False


def _holder(file: int) -> str:
    """The printable text in the lock file, which any user may have written."""
    text = os.pread(file, _MAX_HOLDER_BYTES, 0).decode(errors="replace")
    return "".join(c for c in text if c.isprintable()) or "another process"
