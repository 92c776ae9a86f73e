"""Files that change in one step, records in CSV files, and locks."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import remove, require_room, write_all, write_whole
from analysis.base.locks import take
from analysis.base.reading import read_json
from analysis.base.records import columns, read_records, to_text, write_records


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
        (False, 2**30, "cannot be written to; use a copy that you can write to"),
        (True, 2**20, "expected 32 MiB of free space, got 1 MiB; make room"),
    ],
)
def test_a_folder_needs_room_and_leave_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writable: bool, free: int, message: str
) -> None:
    require_room(tmp_path / "not made" / "yet")
    monkeypatch.setattr(os, "access", lambda path, mode: writable)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    with pytest.raises(HotpathError, match=f"^{tmp_path}: {message}"):
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


def test_numbers_and_texts_that_cannot_be_shown_are_one_line(tmp_path: Path) -> None:
    assert len(str(FieldError("size", "a number", "9" * 9999))) < 600
    assert "a longer number" in str(FieldError("size", "a number", 10**9999))
    path = tmp_path / "a.json"
    for text, message in (
        ('{"a": 1, "a": 2}', "every key once, got 'a' again"),
        *((text, "JSON compliant") for text in ("[NaN]", "[1e999]")),
        *((f'["{text}"]', "text that can be shown") for text in (r"\u001b", r"\ud800", "\u202e")),
        ("9" * 5000, "Exceeds the limit"),
        ("[" * 100_000, "recursion"),
    ):
        path.write_text(text)
        with pytest.raises(HotpathError, match=f"^{path}: not valid JSON: [^\n]*{message}"):
            read_json(path)
    path.write_text('["\\n\\t\\\\ é"]')
    assert read_json(path) == ["\n\t\\ é"]


@dataclass(frozen=True)
class Reading:
    name: str
    count: int
    seconds: float
    stream: int | None

    def check(self) -> None:
        if self.count == 13:
            raise ValueError(f"count: expected luck, got {self.count}")


HEADER = "name,count,seconds,stream\n"
COUNT = st.integers(14, 10**18 - 1)


@given(
    st.lists(
        st.builds(
            Reading,
            name=st.text(st.characters(codec="utf-8")).filter(str.isprintable),
            count=COUNT,
            seconds=st.floats(-1e18, 1e18),
            stream=st.none() | COUNT.map(lambda count: -count),
        )
    )
)
def test_records_survive_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, readings: list[Reading]
) -> None:
    path = tmp_path_factory.mktemp("records") / "r.csv"
    write_records(path, Reading, readings)
    assert read_records(path, Reading) == readings


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f"{HEADER}a,1,0.5,\na,few,0.5,\n", "3: count: expected a whole number, got 'few'"),
        *((f"{HEADER}a,1,{x},2\n", "2: seconds: expected") for x in ("", "nan", "1e999", "1_0")),
        *((f"{HEADER}a,{x},1,2\n", "2: count: expected") for x in ("\u0661", 10**400)),
        (f'{HEADER}"a\nb",1,1,2\n', "3: name: expected text on one line"),
        (f"{HEADER}a,1,0.5,x\n", "2: stream: expected a whole number, got 'x'"),
        (f"{HEADER}a,1,0.5\n", "2: expected 4 fields, got 3"),
        (f'{HEADER}a,1,0.5,\n"a,1,0.5,\n', "3: "),
        (f"{HEADER}a,13,0.5,\n", "2: count: expected luck, got 13"),
        ("name,count\n", "1: expected the columns name,count,seconds,stream"),
        ("", "1: expected the columns name,count,seconds,stream"),
    ],
)
def test_invalid_file_is_rejected_with_line_and_column(
    tmp_path: Path, text: str, fault: str
) -> None:
    path = tmp_path / "r.csv"
    path.write_text(text)
    with pytest.raises(HotpathError) as caught:
        read_records(path, Reading)
    assert str(caught.value).startswith(f"{path}: line {fault}")
    rows = [("a\rb", 2, 1 / 3, None)]  # control characters become spaces
    assert to_text(columns(Reading), rows, number=".3f") == f"{HEADER}a b,2,0.333,\n"


class Held(Exception):
    """The waiting process learned the holder of the lock."""


def refuse(holder: str) -> NoReturn:
    raise Held(holder)


def test_a_lock_names_its_holder_and_any_user_may_take_it_next(tmp_path: Path) -> None:
    path, mask = tmp_path / "lock", os.umask(0o077)
    first = take(path, "the first\n\x1b[31m", refuse)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
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
