"""Locks that the kernel frees as soon as their holder has ended, however that was."""

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
_LONGEST: Final = 300


def take(path: Path, holder: str, held: Callable[[str], None]) -> int:
    """Lock the file `path`, which any user may, and write into it who has it.

    While somebody else has it: call `held` once with what they wrote, then wait. The lock is free
    again when the descriptor that is returned is closed; other programs do not inherit it.
    HotpathError where the file cannot be used.
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
            os.pwrite(file, holder.encode()[:_LONGEST], 0)
            return file
        os.close(file)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with suppress(FileExistsError):
            # Not made by the call that opens it: of others' files in such a folder the kernel
            # refuses that.
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
    """Whether nobody has removed the file while it was waited for."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), path.stat())
    return False


def _holder(file: int) -> str:
    """What the holder wrote. Anybody may write into the file: only what can be shown is."""
    text = os.pread(file, _LONGEST, 0).decode(errors="replace")
    return "".join(c for c in text if c.isprintable()) or "another process"
