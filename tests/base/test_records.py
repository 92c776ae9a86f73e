"""CSV files of dataclasses: round trips, and errors with line and column."""

from __future__ import annotations

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

    def check(self) -> None:
        if self.count == 13:
            raise ValueError(f"count: expected luck, got {self.count}")


LARGEST = 1e18
HEADER = "name,count,seconds,stream\n"


@given(
    st.lists(
        st.builds(
            Reading,
            name=st.text(st.characters(codec="utf-8")).filter(str.isprintable),
            count=st.integers(14, 10**18 - 1),
            seconds=st.floats(-LARGEST, LARGEST),
            stream=st.none() | st.integers(-(10**18) + 1, 10**18 - 1),
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
    ("text", "fault"),
    [
        (f"{HEADER}a,1,0.5,\na,few,0.5,\n", "3: count: expected a whole number, got 'few'"),
        (f"{HEADER}a,1,,2\n", "2: seconds: expected a number of at most 1e+18, got ''"),
        *((f"{HEADER}a,1,{x},2\n", "2: seconds: expected a n") for x in ("nan", "1e999", "1_0")),
        *((f"{HEADER}a,{x},1,2\n", "2: count: expected a w") for x in ("\u0661", 10**400)),
        (f'{HEADER}"a\nb",1,1,2\n', "3: name: expected text on one line"),
        (f"{HEADER}a\0,1,1,2\n", "2: name: expected text on one line"),
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
