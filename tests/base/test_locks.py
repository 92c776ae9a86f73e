"""Locks: free once their holder has ended, and naming it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NoReturn

import pytest

from analysis.base.errors import HotpathError
from analysis.base.locks import take


class Held(Exception):
    """The waiting process learned the holder of the lock."""


def refuse(holder: str) -> NoReturn:
    raise Held(holder)


def test_lock_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = take(path, "the first\n\x1b[31m", refuse)
    with pytest.raises(Held, match=r"^the first\[31m$"):
        take(path, "the second", refuse)
    first.release()
    second = take(path, "the second", refuse)
    with pytest.raises(Held, match=r"^the second$"):
        take(path, "the third", refuse)
    second.release()


def test_any_user_may_take_the_lock_next(tmp_path: Path) -> None:
    mask = os.umask(0o077)
    take(tmp_path / "lock", "", refuse).release()
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o666


def test_lock_file_removed_during_a_wait_locks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = take(path, "first", refuse)

    def clean(holder: str) -> None:
        path.unlink()
        first.release()

    second = take(path, "second", clean)
    assert path.read_text() == "second"
    with pytest.raises(Held, match="second"):
        take(path, "third", refuse)
    second.release()


def test_only_plain_files_are_locked(tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "no/such/folder"):
        with pytest.raises(HotpathError, match=f"{name}: cannot be locked: "):
            take(tmp_path / name, "", refuse)
