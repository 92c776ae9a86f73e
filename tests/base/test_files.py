"""Files that change in one step, and locks."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import remove, require_room, write_all, write_whole
from analysis.base.locks import take
from analysis.base.reading import read_yaml


def test_failed_write_leaves_the_file_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "folder" / "file"
    write_whole(path, "old")
    (tmp_path / "in_the_way").touch()
    with pytest.raises(OSError, match="in_the_way/c"):
        write_all({path: "new", tmp_path / "in_the_way" / "c": ""})

    def no_space(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "new")
    assert {p.name: p.read_text() for p in path.parent.iterdir()} == {"file": "old"}


@pytest.mark.parametrize(
    ("writable", "free", "message"),
    [
        (True, 2**30, None),
        (False, 2**30, "cannot be written to; use a copy that you can write to"),
        (True, 2**20, "expected 32 MiB of free space, got 1 MiB; make room"),
    ],
)
def test_a_folder_needs_room_and_leave_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writable: bool, free: int, message: str | None
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: writable)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    with pytest.raises(HotpathError, match=f"^{tmp_path}: {message}") if message else nullcontext():
        require_room(tmp_path / "not made" / "yet")


def test_a_folder_is_removed_in_one_step_with_what_a_crash_left(tmp_path: Path) -> None:
    write_whole(tmp_path / ".folder.gone" / "of an earlier attempt", "")
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for name in ("link", "folder", "gone"):
        remove(tmp_path / name)
    assert [*tmp_path.iterdir()] == []


def test_files_are_utf8_in_every_locale(tmp_path: Path) -> None:
    write = "import sys; from pathlib import Path; from analysis.base.files import write_whole; "
    code = write + "write_whole(Path(sys.argv[1]), chr(181))"
    locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-X", "utf8=0", "-c", code, str(tmp_path / "file")]
    subprocess.run(command, env=os.environ | locale, check=True)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "\N{MICRO SIGN}"


def test_a_number_of_thousands_of_digits_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(f"title: one\nbudget: {'9' * 5000}\n")
    with pytest.raises(HotpathError, match=r"study.yaml: not valid YAML: [^\n]{1,200}$"):
        read_yaml(tmp_path / "study.yaml")
    assert len(str(FieldError("size", "a number", "9" * 9999))) < 600
    assert "a longer number" in str(FieldError("size", "a number", 10**9999))


class Held(Exception):
    """The waiting process learned the holder of the lock."""


def refuse(holder: str) -> NoReturn:
    raise Held(holder)


def test_a_lock_names_its_holder_and_is_of_a_plain_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = take(path, "the first\n\x1b[31m", refuse)
    with pytest.raises(Held, match=r"^the first\[31m$"):
        take(path, "the second", refuse)

    def clean(holder: str) -> None:
        path.unlink()
        first.release()

    second = take(path, "the second", clean)  # a file removed meanwhile locks nothing
    with pytest.raises(Held, match=r"^the second$"):
        take(path, "the third", refuse)
    second.release()
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "no/such/folder"):
        with pytest.raises(HotpathError, match=f"{name}: cannot be locked: "):
            take(tmp_path / name, "", refuse)


def test_any_user_may_take_the_lock_next(tmp_path: Path) -> None:
    mask = os.umask(0o077)
    take(tmp_path / "lock", "", refuse).release()
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o666
