"""CSV files whose rows are a dataclass: a column a field, in the order of the fields."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, create_model

from analysis.base import keys
from analysis.base.errors import HotpathError
from analysis.base.files import write_whole
from analysis.base.reading import read_text
from analysis.base.values import FORMS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


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


def parse_record(record: type[Record], texts: Mapping[str, object]) -> Record:
    """One row from the texts of its columns, by the types of the fields and, if the record has one,
    its method `check`. FieldError names the invalid column."""
    parsed = record(**dict(keys.read(_columns_model(record), texts, "")))
    if check := getattr(parsed, "check", None):
        check()
    return parsed


@cache
def _columns_model(record: type[DataclassInstance]) -> type[BaseModel]:
    """The model of a row whose cells are text."""
    types = get_type_hints(record, include_extras=True)
    fields: dict[str, Any] = {name: (_of_text(types[name]), ...) for name in columns(record)}
    return create_model(record.__name__, __config__=ConfigDict(protected_namespaces=()), **fields)


def _of_text(kind: Any) -> Any:
    """`kind`, the type of a field, read from the text of a cell; None from an empty one."""
    is_optional = NoneType in get_args(kind)
    inner = next(one for one in get_args(kind) if one is not NoneType) if is_optional else kind
    plain = get_args(inner)[0] if get_origin(inner) is Annotated else inner
    if plain not in FORMS:
        return kind
    expected, read = FORMS[plain]

    def value(text: Any) -> Any:
        if is_optional and text == "":
            return None
        try:
            return read(text)
        except ValueError:
            raise keys.Fault(expected, text) from None

    return Annotated[kind, BeforeValidator(value)]
