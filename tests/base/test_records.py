"""CSV files of dataclasses: round trips, and errors with line and column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import HotpathError
from analysis.base.records import columns, read_records, to_text, write_records


@dataclass(frozen=True)
class Reading:
    name: str
    count: int
    seconds: float
    stream: int | None


LARGEST = 1e18
MAX_COUNT = 10**18 - 1
HEADER = "name,count,seconds,stream\n"


@given(
    st.lists(
        st.builds(
            Reading,
            name=st.text(st.characters(codec="utf-8")).filter(str.isprintable),
            count=st.integers(-MAX_COUNT, MAX_COUNT),
            seconds=st.floats(-LARGEST, LARGEST),
            stream=st.none() | st.integers(-MAX_COUNT, MAX_COUNT),
        )
    )
)
def test_records_survive_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, readings: list[Reading]
) -> None:
    path = tmp_path_factory.mktemp("records") / "r.csv"
    write_records(path, Reading, readings)
    assert read_records(path, Reading) == readings


def test_floats_are_formatted_and_control_characters_become_spaces() -> None:
    rows = [("a\rb", 2, 1 / 3, None)]
    assert to_text(columns(Reading), rows, number=".3f") == f"{HEADER}a b,2,0.333,\n"


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ("a,1,0.5,\na,few,0.5,\n", "line 3: count: expected a whole number, got 'few'"),
        ("a,1,,2\n", "line 2: seconds: expected a number of at most 1e+18, got ''"),
        ("a,1,nan,2\n", "line 2: seconds: expected a number"),
        ("a,1,1e999,2\n", "line 2: seconds: expected a number"),
        ("a,1,1_0,2\n", "line 2: seconds: expected a number"),
        ("a,\u0661,1,2\n", "line 2: count: expected a whole number"),
        (f"a,{10**400},1,2\n", "line 2: count: expected a whole number"),
        ('"a\nb",1,1,2\n', "line 3: name: expected text on one line"),
        ("a\0,1,1,2\n", "line 2: name: expected text on one line"),
        ("a,1,0.5,x\n", "line 2: stream: expected a whole number, got 'x'"),
        ("a,1,0.5\n", "line 2: expected 4 fields, got 3"),
        ('a,1,0.5,\n"a,1,0.5,\n', "line 3: "),
    ],
)
def test_invalid_row_is_rejected_with_file_line_and_column(
    tmp_path: Path, rows: str, fault: str
) -> None:
    path = tmp_path / "r.csv"
    path.write_text(HEADER + rows)
    with pytest.raises(HotpathError) as caught:
        read_records(path, Reading)
    assert str(caught.value).startswith(f"{path}: {fault}")


@dataclass(frozen=True)
class Newer:
    """Rows with a column that older files lack."""

    name: str
    gpu: int | None = None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("name\na\n", [Newer("a")]),
        ("name,gpu\na,\nb,1\n", [Newer("a"), Newer("b", 1)]),
        ("name\na,1\n", "line 2: expected 2 fields, got 3"),
        ("name,gpu\na\n", "line 2: expected 2 fields, got 1"),
        ("gpu\n1\n", "line 1: expected the columns name,gpu"),
        ("name,gpu,mhz\n", "line 1: expected the columns name,gpu"),
        ("", "line 1: expected the columns name,gpu"),
    ],
)
def test_an_older_file_may_lack_the_last_columns(
    tmp_path: Path, text: str, found: list[Newer] | str
) -> None:
    path = tmp_path / "r.csv"
    path.write_text(text)
    if isinstance(found, list):
        assert read_records(path, Newer) == found
    else:
        with pytest.raises(HotpathError, match=f"^{re.escape(f'{path}: {found}')}$"):
            read_records(path, Newer)


@dataclass(frozen=True)
class Checked(Reading):
    def check(self) -> None:
        if self.count > 1:
            raise ValueError(f"count: expected at most 1, got {self.count}")


def test_a_record_checks_its_row(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"{HEADER}a,1,0.5,\nb,2,0.5,\n")
    with pytest.raises(HotpathError, match=r": line 3: count: expected at most 1, got 2$"):
        read_records(path, Checked)
    path.write_text(f"{HEADER}a,1,0.5,\n")
    assert read_records(path, Checked) == [Checked("a", 1, 0.5, None)]


def test_another_header_and_another_error(tmp_path: Path) -> None:
    class Refused(HotpathError):
        pass

    path = tmp_path / "r.csv"
    path.write_text("name,count\n")
    with pytest.raises(Refused, match="line 1: expected the columns name,count,seconds,stream"):
        read_records(path, Reading, error=Refused)
