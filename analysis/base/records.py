"""CSV files whose rows are a dataclass: a column a field, in the order of the fields."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, astuple, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NewType, TypeVar

from analysis.base.errors import HotpathError
from analysis.base.files import write_whole
from analysis.base.reading import read_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")

OPTIONAL: Final = " | None"
MAX_NUMBER: Final = 1e18
"""Upper bound of all measured numbers, in any unit."""
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)


UtcTime = NewType("UtcTime", str)


def line_of_text(text: str) -> str:
    """`text` if it is one printable line; else ValueError."""
    if not text.isprintable():
        raise ValueError
    return text


def whole_number(text: str) -> int:
    """In decimal digits, within 64 bits; else ValueError."""
    if not _WHOLE.fullmatch(text):
        raise ValueError
    return int(text)


def finite_number(text: str) -> float:
    """A number as Python writes it, at most MAX_NUMBER; else ValueError."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    is_lost = value == 0 and re.search("[1-9]", text.partition("e")[0])
    if is_lost or not abs(value) <= MAX_NUMBER:
        raise ValueError
    return value


def utc_time(text: str) -> str:
    """`text` if it is a valid timestamp such as `2026-01-02T03:04:05Z`; else ValueError."""
    if not _TIME.fullmatch(text):
        raise ValueError
    datetime.fromisoformat(text)
    return text


def is_utc_time(text: str) -> bool:
    """Whether `text` is a timestamp that `utc_time` accepts."""
    try:
        return bool(utc_time(text))
    except ValueError:
        return False


KINDS: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "str": ("text on one line", line_of_text),
    "int": ("a whole number", whole_number),
    "UtcTime": ("a UTC timestamp such as 2026-11-24T06:00:00Z", utc_time),
    "float": (f"a number of at most {MAX_NUMBER:g}", finite_number),
}
"""Expected form and reader of a field, by its annotation without OPTIONAL."""


def columns(record: type[DataclassInstance]) -> tuple[str, ...]:
    """The columns of a file with such rows."""
    return tuple(record.__dataclass_fields__)  # asked for every row, for which fields() is slow


def to_text(header: Sequence[str], rows: Iterable[Sequence[object]], number: str = "") -> str:
    """The text of a CSV file; `number` is the format of floats, None becomes an empty cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_text(value, number) for value in row] for row in rows)
    return buffer.getvalue()


def _text(value: object, number: str) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:{number}}"
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def write_records(
    path: Path, record: type[Record], records: Iterable[Record], number: str = ""
) -> None:
    """Write `records`; `number` is the format of floats."""
    write_whole(path, records_text(record, records, number))


def records_text(record: type[Record], records: Iterable[Record], number: str = "") -> str:
    """The text of a file of `records`; `number` is the format of floats."""
    return to_text(columns(record), map(astuple, records), number)


def read_records(
    path: Path, record: type[Record], error: type[HotpathError] = HotpathError
) -> list[Record]:
    """Every row of a file, as `parse_record` reads it. `error` names the file and the bad line."""
    rows = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        missing = _missing(record, next(rows, []))
        return [parse_record(record, row + missing) for row in rows]
    except (ValueError, csv.Error) as fault:
        raise error(f"{path}: line {max(rows.line_num, 1)}: {fault}") from fault


def _missing(record: type[DataclassInstance], header: Sequence[str]) -> list[str]:
    """Empty cells for the last columns, which older files may lack where the field has a default;
    ValueError if the header has others."""
    names = columns(record)
    required = sum(field.default is MISSING for field in fields(record))
    if tuple(header) != names[: max(len(header), required)]:
        raise ValueError(f"expected the columns {','.join(names)}")
    return [""] * (len(names) - len(header))


def cells(record: type[DataclassInstance], row: Sequence[str]) -> dict[str, str]:
    """The texts of a row by column; ValueError where it has another length."""
    names = columns(record)
    if len(row) != len(names):
        raise ValueError(f"expected {len(names)} fields, got {len(row)}")
    return dict(zip(names, row, strict=True))


def parse_record(record: type[Record], row: Sequence[str]) -> Record:
    """One row by the types of the fields and, if the record has one, its method `check`.

    ValueError, also of `check`, names the invalid column.
    """
    texts = cells(record, row)
    parsed = record(
        *(_value(field.name, str(field.type), texts[field.name]) for field in fields(record))
    )
    if check := getattr(parsed, "check", None):
        check()
    return parsed


def _value(column: str, annotation: str, text: str) -> object:
    if not text and annotation.endswith(OPTIONAL):
        return None
    expected, read = KINDS[annotation.removesuffix(OPTIONAL)]
    try:
        return read(text)
    except ValueError:
        raise ValueError(f"{column}: expected {expected}, got {text!r}") from None
