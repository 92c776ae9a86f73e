"""Plain files, read whole: no link is followed, no device or pipe opened, and no more read than a
limit."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from analysis.base.errors import HotpathError

LIMIT_BYTES: Final = 16 * 2**20


def read_bytes(path: Path, limit: int = LIMIT_BYTES) -> bytes:
    """The content of a plain file; HotpathError if it is another kind of file or beyond `limit`."""
    try:
        require_plain(path, path.lstat(), limit)
        # If the file was replaced meanwhile: follow no link and wait for no pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(limit)
    except OSError as error:
        raise HotpathError(f"{path}: cannot be read: {error.strerror}") from error


def read_text(path: Path, limit: int = LIMIT_BYTES) -> str:
    """The UTF-8 text of a plain file; HotpathError as of `read_bytes`, or for another encoding."""
    return decoded(path, read_bytes(path, limit))


def decoded(path: Path, content: bytes) -> str:
    """`content` as text; HotpathError with file and line where it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise HotpathError(f"{path}: line {line}: not UTF-8") from error


def require_plain(path: Path, status: os.stat_result, limit: int = LIMIT_BYTES) -> None:
    """HotpathError unless `status` is that of a plain file of at most `limit` bytes. It must
    not be the status of a link's target."""
    if not stat.S_ISREG(status.st_mode):
        raise HotpathError(f"{path}: expected a plain file, got {kind_of(status)}")
    if status.st_size > limit:
        raise HotpathError(f"{path}: expected at most {limit} bytes, got {status.st_size}")


def require_folder(path: Path) -> None:
    """HotpathError unless `path` is a folder and no link to one."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise HotpathError(f"{path}: expected a folder, got {kind_of(status)}")


def kind_of(status: os.stat_result) -> str:
    """The kind of file, in words."""
    kinds = {
        stat.S_IFREG: "a plain file",
        stat.S_IFDIR: "a folder",
        stat.S_IFLNK: "a link",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(status.st_mode), "a device")
