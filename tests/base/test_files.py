"""Files and folders that change in one step."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import (
    put_in_place,
    require_plain_path,
    require_room,
    write_all,
    write_whole,
)
from analysis.base.reading import read_yaml


def test_failed_write_leaves_the_file_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "folder" / "file"
    write_whole(path, "old")

    def no_space(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "new")
    assert {p.name: p.read_text() for p in path.parent.iterdir()} == {"file": "old"}


def test_related_files_change_together_or_not_at_all(
    tmp_path: Path,
) -> None:
    write_all({tmp_path / "a": "old", tmp_path / "b": "old"})
    (tmp_path / "in_the_way").write_text("")
    with pytest.raises(OSError, match="in_the_way/c"):
        write_all({tmp_path / "a": "new", tmp_path / "in_the_way" / "c": "", tmp_path / "b": "new"})
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"a": "old", "b": "old", "in_the_way": ""}


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


@pytest.mark.parametrize(("name", "character"), [("hot path", "' '"), ("hotpath(2)", r"'\('")])
def test_path_that_a_shell_would_split_is_rejected(name: str, character: str) -> None:
    require_plain_path(Path("/home/grüße/hot-path_2.1"))
    with pytest.raises(HotpathError, match=f"expected a path without {character}"):
        require_plain_path(Path("/home") / name)


def test_a_folder_is_put_in_place_of_another(tmp_path: Path) -> None:
    write_whole(tmp_path / ".folder.gone" / "of an earlier attempt", "")
    made, folder = tmp_path / "made", tmp_path / "folder"
    for old in (folder, made):
        (old / old.name).mkdir(parents=True)
    put_in_place(made, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert [path.name for path in folder.iterdir()] == ["made"]


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
