"""Files that change in one step, records in CSV files, and locks."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.base.errors import HotpathError
from analysis.base.files import remove, take, write_all, write_whole
from analysis.base.reading import read_json
from analysis.base.records import columns, read_records, to_text, write_records


def test_a_failed_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder" / "file"
    write_whole(path, "old")
    (tmp_path / "in_the_way").touch()
    with pytest.raises(OSError, match="in_the_way/c"):
        write_all({path: "new", tmp_path / "in_the_way" / "c": ""})
    monkeypatch.setattr(os, "fsync", lambda _: os.open("/proc/none", os.O_CREAT))
    with pytest.raises(OSError, match="folder/file"):
        write_whole(path, "new")
    assert {p.name: p.read_text() for p in path.parent.iterdir()} == {"file": "old"}


def test_a_folder_is_removed_in_one_step_with_what_a_crash_left(tmp_path: Path) -> None:
    write_whole(tmp_path / ".folder.gone" / "of an earlier attempt", "")
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for name in ("link", "folder", "gone"):
        remove(tmp_path / name)
    assert [*tmp_path.iterdir()] == []


def test_numbers_and_texts_that_cannot_be_shown_are_no_json(tmp_path: Path) -> None:
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
NAME = st.text(st.characters(codec="utf-8")).filter(str.isprintable)
SECONDS, STREAM = st.floats(-1e18, 1e18), st.none() | COUNT.map(lambda count: -count)


@settings(max_examples=30)  # each writes a file
@given(st.lists(st.builds(Reading, NAME, COUNT, SECONDS, STREAM)))
def test_records_are_read_again(
    tmp_path_factory: pytest.TempPathFactory, readings: list[Reading]
) -> None:
    path = tmp_path_factory.mktemp("records") / "r.csv"
    write_records(path, Reading, readings)
    assert read_records(path, Reading) == readings


def test_invalid_file_is_rejected_with_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    for text, fault in (
        (f"{HEADER}a,1,0.5,\na,few,0.5,\n", "3: count: expected a whole number, got 'few'"),
        *((f"{HEADER}a,1,{x},2\n", "2: seconds: expected") for x in ("", "nan", "1e999", "1_0")),
        *((f"{HEADER}a,{x},1,2\n", "2: count: expected") for x in ("\u0661", 10**400)),
        (f'{HEADER}"a\nb",1,1,2\n', "3: name: expected text on one line"),
        (f"{HEADER}a,1,0.5,x\n", "2: stream: expected a whole number, got 'x'"),
        (f"{HEADER}a,1,0.5\n", "2: expected 4 fields, got 3"),
        (f'{HEADER}a,1,0.5,\n"a,1,0.5,\n', "3: "),
        (f"{HEADER}a,13,0.5,\n", "2: count: expected luck, got 13"),
        *((text, f"1: expected the columns {HEADER.strip()}") for text in ("name,count\n", "")),
    ):
        path.write_text(text)
        with pytest.raises(HotpathError) as caught:
            read_records(path, Reading)
        assert str(caught.value).startswith(f"{path}: line {fault}")
    rows = [("a\rb", 2, 1 / 3, None)]  # control characters become spaces
    assert to_text(columns(Reading), rows, number=".3f") == f"{HEADER}a b,2,0.333,\n"


def test_a_lock_names_its_holder_and_any_user_may_take_it_next(tmp_path: Path) -> None:
    path, mask = tmp_path / "lock", os.umask(0o077)

    def refuse(holder: str) -> None:
        pytest.fail(holder)

    def clean(holder: str) -> None:
        path.unlink()
        first.release()

    first = take(path, "the first\n\x1b[31m", refuse)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    with pytest.raises(pytest.fail.Exception, match=r"^the first\\n\\x1b\[31m$"):
        take(path, "the second", refuse)
    second = take(path, "the second", clean)  # a file removed meanwhile locks nothing
    with pytest.raises(pytest.fail.Exception, match="the second"):
        take(path, "the third", refuse)
    second.release()
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(HotpathError, match=f"{name}: cannot be locked: "):
            take(tmp_path / name, "", refuse)
