"""CSV files whose rows are a dataclass: a column a field, in the order of the fields.

A field `values` is a mapping from metrics, (name, unit), to samples: it has a column for each
metric, `<metric> [<unit>]`, with the samples in their order, separated by spaces.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_type_hints

from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import write_whole
from analysis.base.reading import read_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")
VALUES, METRICS = "values", "<metric> [<unit>]"
_METRIC: Final = re.compile(rf"({keys.NAME.pattern}) \[([A-Za-z0-9/%^]{{1,16}})\]")
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")


def columns(record: type[DataclassInstance]) -> tuple[str, ...]:
    """The columns of a file with such rows; METRICS stands for one per metric."""
    return tuple(METRICS if n == VALUES else n for n in record.__dataclass_fields__)


def to_text(header: Sequence[str], rows: Iterable[Iterable[object]], number: str = "") -> str:
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
    rows = [{name: getattr(one, name) for name in record.__dataclass_fields__} for one in records]
    for row in rows:
        for (name, unit), samples in row.pop(VALUES, {}).items():
            row[f"{name} [{unit}]"] = " ".join(f"{value:{number}}" for value in samples)
    metrics = dict.fromkeys(name for row in rows for name in row if name.endswith("]"))
    header = _header(record, metrics)
    return to_text(header, ([row.get(name) for name in header] for row in rows), number)


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
    found = []
    try:
        header = next(rows, [])
        metrics = {name: match.groups() for name in header if (match := _METRIC.fullmatch(name))}
        names = {name for name, _ in metrics.values()}
        if header != _header(record, metrics) or len(names) < len(metrics):
            raise ValueError(f"expected the columns {','.join(columns(record))}, each once")
        for row in rows:
            if len(row) != len(header):
                raise ValueError(f"expected {len(header)} fields, got {len(row)}")
            cells = dict(zip(header, row, strict=True))
            values = {metric: cells.pop(name) for name, metric in metrics.items()}
            found.append(parse_record(record, cells | {VALUES: values}))
    except (HotpathError, ValueError, csv.Error) as fault:
        raise HotpathError(f"{path}: line {max(rows.line_num, 1)}: {fault}") from fault
    return found


def _header(record: type[DataclassInstance], metrics: Iterable[str]) -> list[str]:
    """The columns of a file with samples of these metrics, which are columns."""
    return [c for name in columns(record) for c in (metrics if name == METRICS else [name])]


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
    if int in kinds and not _WHOLE.fullmatch(text):
        raise FieldError(column, "a whole number", text)
    if float in kinds and (not _NUMBER.fullmatch(text) or abs(float(text)) > keys.MAX_NUMBER):
        raise FieldError(column, f"a number of at most {keys.MAX_NUMBER:g}", text)
    return text
