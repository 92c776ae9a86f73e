"""Files and folders that change in one step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from analysis.files import remove_together, write_together, write_whole


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(
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


def test_a_folder_comes_and_goes_with_all_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    remainder = tmp_path / ".folder.partial" / "of an earlier attempt"
    write_whole(remainder, "")
    write_together(folder, {"a": "1", "b/c": "2\n"})
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*")} == {"a", "b", "b/c"}
    assert (folder / "b" / "c").read_text() == "2\n"
    write_whole(tmp_path / ".folder.gone" / "of an earlier attempt", "")
    remove_together(folder)
    assert list(tmp_path.iterdir()) == []
