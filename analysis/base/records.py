"""CSV files whose rows are a dataclass: a column a field, in the order of the fields."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import write_whole
from analysis.base.reading import read_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


def columns(record: type[DataclassInstance]) -> tuple[str, ...]:
    """The columns of a file with such rows."""
    return tuple(record.__dataclass_fields__)  # asked for every row, for which fields() is slow


def to_text(header: Sequence[str], rows: Iterable[Sequence[object]], number: str = "") -> str:
    """The text of a CSV file; `number` is the format of floats, None becomes an empty cell."""

    def cell(value: object) -> str:
        if isinstance(value, float):
            return f"{value:{number}}"
        text = "" if value is None else str(value)
        return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(map(cell, row) for row in rows)
    return buffer.getvalue()


def records_text(record: type[Record], records: Iterable[Record], number: str = "") -> str:
    """The text of a file of `records`; `number` is the format of floats."""
    return to_text(columns(record), map(astuple, records), number)


def write_records(
    path: Path, record: type[Record], records: Iterable[Record], number: str = ""
) -> None:
    """Write `records`; `number` is the format of floats."""
    write_whole(path, records_text(record, records, number))


def read_records(path: Path, record: type[Record]) -> list[Record]:
    """Every row of a file, as `parse_record` reads it. HotpathError names the file and the bad
    line."""
    return parse_records(path, read_text(path), record)


def parse_records(path: Path, text: str, record: type[Record]) -> list[Record]:
    """Every row in `text`, the content of the file; errors as of `read_records`."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        if tuple(next(rows, ())) != columns(record):
            raise ValueError(f"expected the columns {','.join(columns(record))}")
        return [parse_record(record, cells(record, row)) for row in rows]
    except (HotpathError, ValueError, csv.Error) as fault:
        raise HotpathError(f"{path}: line {max(rows.line_num, 1)}: {fault}") from fault


def cells(record: type[DataclassInstance], row: Sequence[str]) -> dict[str, str]:
    """The texts of a row by column; ValueError where it has another length."""
    names = columns(record)
    if len(row) != len(names):
        raise ValueError(f"expected {len(names)} fields, got {len(row)}")
    return dict(zip(names, row, strict=True))


def parse_record(record: type[Record], texts: Mapping[str, Any]) -> Record:
    """One row from the texts of its columns, by the types of the fields and, if the record has one,
    its method `check`. FieldError names the invalid column."""
    values = {name: _value(name, kinds, texts[name]) for name, kinds in _kinds(record).items()}
    parsed = keys.read(record, values, "")
    if check := getattr(parsed, "check", None):
        check()
    return parsed


@cache
def _kinds(record: type[DataclassInstance]) -> dict[str, tuple[Any, ...]]:
    """The types that a value may have in each column."""
    return {name: get_args(kind) or (kind,) for name, kind in get_type_hints(record).items()}


def _value(column: str, kinds: Sequence[Any], text: Any) -> Any:
    """The value of a cell in a column of these types; an empty one is None where allowed."""
    if text == "" and NoneType in kinds:
        return None
    if str in kinds and not text.isprintable():
        raise FieldError(column, "text on one line", text)
    if int in kinds and not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise FieldError(column, "a whole number", text)
    if float in kinds:
        is_number = re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", text)
        if not is_number or abs(float(text)) > keys.MAX_NUMBER:
            raise FieldError(column, f"a number of at most {keys.MAX_NUMBER:g}", text)
    return text
