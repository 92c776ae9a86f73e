"""Raw samples on disk: one CSV per run and study, one row per variant, case and round.

A metric is a column, `<metric> [<unit>]`. Its cell holds the samples in their order, separated by
spaces.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
from pydantic import Field, PlainValidator

from analysis.base import records
from analysis.base.errors import FieldError, HotpathError
from analysis.base.files import write_whole
from analysis.base.keys import UtcTime
from analysis.base.reading import read_text
from analysis.results.store import keys
from analysis.study import NAME

CSV_LIMIT_BYTES: Final = 4 * 2**20
"""Of every CSV file of results."""
MACHINE_LIMIT_SAMPLES: Final = 2**20
"""Two bytes of a file can be a sample, which takes a hundred times as much memory."""
SAMPLE_TYPES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("study", "variant", "case", "metric", "unit"), str),
    "value": float,
    "run": str,
    **dict.fromkeys(("round", "sample", "verified"), int),
    **dict.fromkeys(("status", "reason", "throttle"), str),
    "sm_mhz": float,
    "started_at": str,
}
"""Columns of a table with a row per sample, and their types."""

_DIGITS: Final = ".7g"
"""The format of numbers: finer than any clock."""
_METRIC: Final = re.compile(rf"({NAME.pattern}) \[([A-Za-z0-9/%^]{{1,16}})\]")
_NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_NUMBERS: Final = re.compile(f"{_NUMBER}(?: {_NUMBER})*")

Metric = tuple[str, str]
"""Name and unit."""
Values = npt.NDArray[np.float64]


def _values(cells: Mapping[Metric, str]) -> Mapping[Metric, Values]:
    """The samples in the cells of metrics that have any."""
    found = {}
    for (name, unit), text in cells.items():
        largest = keys.LONGEST_S if unit == "s" else keys.LARGEST
        is_list = _NUMBERS.fullmatch(text)
        values = np.array(text.split(" ") if is_list else [], float)
        is_within = (values == 0) | ((values >= keys.SMALLEST) & (values <= largest))
        if text and not (is_list and is_within.all()):
            limits = f"0 or numbers from {keys.SMALLEST:g} to {largest:g} {unit}"
            raise FieldError(name, limits, text[:200])
        if text:
            found[name, unit] = values
    return found


@dataclass(frozen=True)
class Row:
    """A variant and case in one round; `values` are its samples in SI units by metric.

    A case that was skipped or has failed has no values, but a reason.
    """

    variant: keys.Name
    case: keys.CaseId
    round: keys.Few
    values: Annotated[Mapping[Metric, Sequence[float] | Values], PlainValidator(_values)]
    verified: Annotated[int, Field(ge=0, le=1)]
    status: Annotated[str, Field(pattern="^(ok|skipped|failed)$")]
    reason: keys.Word
    throttle: keys.Reasons
    sm_mhz: keys.Megahertz | None
    started_at: UtcTime

    def check(self) -> None:
        """FieldError unless it has either values or a reason why not."""
        if bool(self.values) != (self.status == "ok"):
            expected = "ok" if self.values else "skipped or failed"
            raise FieldError("status", f"{expected} by the values", self.status)
        if bool(self.reason) != (self.status != "ok"):
            raise FieldError("reason", f"{'no ' if self.values else 'a line of '}text", self.reason)

    @property
    def cell(self) -> tuple[str, str]:
        return self.variant, self.case

    @property
    def key(self) -> tuple[str, str, int]:
        return self.variant, self.case, self.round


_COLUMNS: Final = records.columns(Row)
_PLACE: Final = _COLUMNS.index("values")
FILE_COLUMNS: Final = (*_COLUMNS[:_PLACE], "<metric> [<unit>]", *_COLUMNS[_PLACE + 1 :])
"""Columns of a file; the one in angle brackets stands for one per metric."""


def to_text(rows: Iterable[Row]) -> str:
    """The file of these rows; ValueError if two are of the same variant, case and round."""
    rows = list(rows)
    if len({row.key for row in rows}) < len(rows):
        raise ValueError("expected one row per variant, case, round, got several")
    metrics = list(dict.fromkeys(chain.from_iterable(row.values for row in rows)))
    names = [f"{name} [{unit}]" for name, unit in metrics]
    table = (
        [
            *row.key,
            *(" ".join(f"{v:{_DIGITS}}" for v in row.values.get(metric, ())) for metric in metrics),
            *(getattr(row, name) for name in _COLUMNS[_PLACE + 1 :]),
        ]
        for row in rows
    )
    return records.to_text([*_COLUMNS[:_PLACE], *names, *_COLUMNS[_PLACE + 1 :]], table, _DIGITS)


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write the file of these rows in one step."""
    write_whole(path, to_text(rows))


def read_rows(path: Path) -> list[Row]:
    """Every row of a file; HotpathError has the line number of the first invalid row."""
    return parse_rows(path, read_text(path, CSV_LIMIT_BYTES))


def parse_rows(path: Path, text: str) -> list[Row]:
    """Every row in `text`, the content of the file; errors as of `read_rows`."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: dict[tuple[str, str, int], Row] = {}
    samples = 0
    try:
        header = next(reader, [])
        end = len(header) - len(_COLUMNS[_PLACE + 1 :])
        found = [_METRIC.fullmatch(column) for column in header[_PLACE:end]]
        metrics = [(match[1], match[2]) for match in found if match]
        is_known = (*header[:_PLACE], "values", *header[end:]) == _COLUMNS
        if not is_known or len(dict(metrics)) < len(found):
            raise ValueError(f"expected the columns {','.join(FILE_COLUMNS)}, every metric once")
        for fields in reader:
            if len(fields) != len(header):
                raise ValueError(f"expected {len(header)} fields, got {len(fields)}")
            values = dict(zip(metrics, fields[_PLACE:end], strict=True))
            cells = [*fields[:_PLACE], values, *fields[end:]]
            row = records.parse_record(Row, dict(zip(_COLUMNS, cells, strict=True)))
            samples += max(1, sum(map(len, row.values.values())))
            if samples > MACHINE_LIMIT_SAMPLES:
                raise ValueError(f"expected at most {MACHINE_LIMIT_SAMPLES} samples, got more")
            if rows.setdefault(row.key, row) is not row:
                raise FieldError("variant, case, round", "every row once", row.key)
    except (HotpathError, ValueError, csv.Error) as fault:
        raise HotpathError(f"{path}: line {max(reader.line_num, 1)}: {fault}") from fault
    return [*rows.values()]
