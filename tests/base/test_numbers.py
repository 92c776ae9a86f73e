"""Numbers of thousands of digits, in files and on command lines: one line each."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from analysis.base.cli import at_least
from analysis.base.errors import FieldError, HotpathError
from analysis.base.schema import read_yaml


@pytest.mark.parametrize("digits", [20, 400, 5000, 100_000])
@pytest.mark.parametrize("line", ["budget: {}", "budget: -{}", "a: [{}]", "b: 0x{}"])
def test_a_number_beyond_the_limit_names_file_and_place(
    tmp_path: Path, digits: int, line: str
) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(f"title: one\n{line.format('9' * digits)}\n")
    with pytest.raises(HotpathError) as caught:
        read_yaml(file)
    said = str(caught.value)
    assert said.startswith(f"{file}: not valid YAML: expected a number of at most 1e+18, got one ")
    assert "in line 2, column " in said
    assert "\n" not in said and len(said) < 500


def test_numbers_up_to_the_limit_are_read(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(f"a: {10**18}\nb: -7\nc: 0x10\nd: 1_000\ne: 010\n")
    assert read_yaml(file) == {"a": 10**18, "b": -7, "c": 16, "d": 1000, "e": 8}


@pytest.mark.parametrize("text", ["9" * 19, "9" * 400, "9" * 5000])
def test_a_long_number_of_a_command_line_is_one_line(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^expected a whole number of at most 18 digits, "):
        at_least(0)(text)
    assert at_least(0)("9" * 18) == 10**18 - 1


def test_a_long_value_is_cut_in_an_error() -> None:
    assert len(str(FieldError("size", "a number", "9" * 9999))) < 600
    assert "a longer number" in str(FieldError("size", "a number", 10**9999))
