"""CSV files whose rows are a dataclass: a column a field, in the order of the fields."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from analysis.errors import HotpathError
from analysis.files import write_whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")

OPTIONAL: Final = " | None"
KINDS: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "str": ("text", str),
    "int": ("a whole number", int),
    "float": ("a number", float),
}
"""By the annotation of a field, which may be optional: what is expected, and how it is read."""


def columns(record: type[DataclassInstance]) -> tuple[str, ...]:
    """The columns of a file with such rows."""
    return tuple(record.__dataclass_fields__)  # asked for every row, for which fields() is slow


def to_text(header: Sequence[str], rows: Iterable[Sequence[object]], number: str = "") -> str:
    """The whole file; `number` is the format of floats. What is None is left empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_text(value, number) for value in row] for row in rows)
    return buffer.getvalue()


def _text(value: object, number: str) -> str:
    if value is None:
        return ""
    # csv quotes a line feed in a text, but not a carriage return.
    return f"{value:{number}}" if isinstance(value, float) else str(value).replace("\r", " ")


def write_records(
    path: Path, record: type[Record], records: Iterable[Record], number: str = ""
) -> None:
    """Write `records`; `number` is the format of floats."""
    write_whole(path, to_text(columns(record), map(astuple, records), number))


def read_records(
    path: Path,
    record: type[Record],
    parse: Callable[[list[str]], Record] | None = None,
    error: type[HotpathError] = HotpathError,
) -> list[Record]:
    """Every row of a file, each by `parse` if given, which raises ValueError for a bad one.

    Raises `error` naming the file and the line at fault.
    """
    parse_row = parse or (lambda row: parse_record(record, row))
    with path.open(newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            if tuple(next(rows, [])) != columns(record):
                raise ValueError(f"expected the columns {','.join(columns(record))}")
            return [parse_row(row) for row in rows]
        except (ValueError, csv.Error) as fault:  # a wrong encoding is a ValueError too
            raise error(f"{path}: line {max(rows.line_num, 1)}: {fault}") from fault


def cells(record: type[DataclassInstance], row: Sequence[str]) -> dict[str, str]:
    """The texts of a row by column; ValueError where it has another length."""
    names = columns(record)
    if len(row) != len(names):
        raise ValueError(f"expected {len(names)} fields, got {len(row)}")
    return dict(zip(names, row, strict=True))


def parse_record(record: type[Record], row: Sequence[str]) -> Record:
    """One row by the types of the fields; ValueError names the column that is wrong."""
    texts = cells(record, row)
    return record(
        *(_value(field.name, str(field.type), texts[field.name]) for field in fields(record))
    )


def _value(column: str, annotation: str, text: str) -> object:
    if not text and annotation.endswith(OPTIONAL):
        return None
    expected, read = KINDS[annotation.removesuffix(OPTIONAL)]
    try:
        return read(text)
    except ValueError:
        raise ValueError(f"{column}: expected {expected}, got {text!r}") from None
