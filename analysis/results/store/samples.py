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
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.base import records
from analysis.base.errors import HotpathError
from analysis.base.files import write_whole
from analysis.base.reading import read_text
from analysis.results.store.keys import PRIVATE
from analysis.results.store.throttling import REASONS
from analysis.study import NAME

STATUSES: Final = ("ok", "skipped", "failed")
CSV_LIMIT_BYTES: Final = 4 * 2**20
"""Of every CSV file of results."""
MACHINE_LIMIT_SAMPLES: Final = 2**20
"""Two bytes of a file can be a sample, which takes a hundred times as much memory."""
SMALLEST: Final = 1e-15
"""No measured value but 0 is smaller, whatever its unit."""
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
_PAIR: Final = r"[a-z][a-z0-9_]*=[A-Za-z0-9_.-]+"
CASE: Final = re.compile(f"({_PAIR}(,{_PAIR})*)?")
_METRIC: Final = re.compile(rf"({NAME.pattern}) \[([A-Za-z0-9/%^]{{1,16}})\]")
_NUMBER: Final = r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_NUMBERS: Final = re.compile(f"{_NUMBER}(?: {_NUMBER})*")

Metric = tuple[str, str]
"""Name and unit."""
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A variant and case in one round; `values` are its samples in SI units by metric.

    A case that was skipped or has failed has no values, but a reason.
    """

    variant: str
    case: str
    round: int
    values: Mapping[Metric, Sequence[float] | Values]
    verified: int
    status: str
    reason: str
    throttle: str
    sm_mhz: float | None
    started_at: str

    @property
    def cell(self) -> tuple[str, str]:
        return self.variant, self.case


_FIRST: Final = ("variant", "case", "round")
_LAST: Final = ("verified", "status", "reason", "throttle", "sm_mhz", "started_at")
FILE_COLUMNS: Final = (*_FIRST, "<metric> [<unit>]", *_LAST)
"""Columns of a file; the one in angle brackets stands for one per metric."""


def to_text(rows: Iterable[Row]) -> str:
    """The file of these rows; ValueError if two are of the same variant, case and round."""
    rows = list(rows)
    keys = {(*row.cell, row.round) for row in rows}
    if len(keys) < len(rows):
        raise ValueError(f"expected one row per {', '.join(_FIRST)}, got several")
    metrics = list(dict.fromkeys(chain.from_iterable(row.values for row in rows)))
    header = (*_FIRST, *(f"{name} [{unit}]" for name, unit in metrics), *_LAST)
    table = (
        (
            *(getattr(row, name) for name in _FIRST),
            *(" ".join(f"{v:{_DIGITS}}" for v in row.values.get(one, ())) for one in metrics),
            *(getattr(row, name) for name in _LAST),
        )
        for row in rows
    )
    return records.to_text(header, table, _DIGITS)


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write the file of these rows in one step."""
    write_whole(path, to_text(rows))


def read_rows(path: Path) -> list[Row]:
    """Every row of a file; HotpathError has the line number of the first invalid row."""
    return parse_rows(path, read_text(path, CSV_LIMIT_BYTES))


def parse_rows(path: Path, text: str) -> list[Row]:
    """Every row in `text`, the content of the file; errors as of `read_rows`."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Row] = []
    seen: set[tuple[object, ...]] = set()
    count = 0
    try:
        metrics = _metrics(next(reader, []))
        for fields in reader:
            row = _parse_row(metrics, fields)
            count += max(1, sum(map(len, row.values.values())))
            if count > MACHINE_LIMIT_SAMPLES:
                raise ValueError(f"expected at most {MACHINE_LIMIT_SAMPLES} samples, got more")
            key = (*row.cell, row.round)
            if key in seen:
                raise ValueError(f"{', '.join(_FIRST)}: expected every row once, got {key} again")
            seen.add(key)
            rows.append(row)
    except (ValueError, csv.Error) as fault:
        raise HotpathError(f"{path}: line {max(reader.line_num, 1)}: {fault}") from fault
    return rows


def _metrics(header: Sequence[str]) -> list[Metric]:
    """Name and unit of each metric's column; ValueError if a column is not one of a file's."""
    first, last = len(_FIRST), len(header) - len(_LAST)
    columns = [_METRIC.fullmatch(column) for column in header[first:last]]
    metrics = [(match[1], match[2]) for match in columns if match]
    is_known = tuple(header[:first]) == _FIRST and tuple(header[last:]) == _LAST
    if last < first or not is_known or len({name for name, _ in metrics}) < len(columns):
        raise ValueError(f"expected the columns {','.join(FILE_COLUMNS)}, every metric once")
    return metrics


def _parse_row(metrics: Sequence[Metric], fields: Sequence[str]) -> Row:
    """One row of the file; ValueError names the invalid column."""
    first, last = len(_FIRST), len(_FIRST) + len(metrics)
    if len(fields) != last + len(_LAST):
        raise ValueError(f"expected {last + len(_LAST)} fields, got {len(fields)}")
    variant, case, number = fields[:first]
    verified, status, reason, throttle, sm_mhz, started_at = fields[last:]
    cells = fields[first:last]
    _require("variant", variant, NAME.fullmatch(variant), "a name")
    _require("case", case, CASE.fullmatch(case), "key=value pairs joined by commas")
    _require("round", number, re.fullmatch("[0-9]{1,9}", number), "a whole number")
    _require("verified", verified, verified in ("0", "1"), "0 or 1")
    expected = ("ok",) if any(cells) else STATUSES[1:]
    _require("status", status, status in expected, f"{' or '.join(expected)} by the values")
    expected_reason = "none" if status == "ok" else "a line of text without a path"
    is_reason = reason.isprintable() and not PRIVATE.search(reason)
    _require("reason", reason, is_reason and bool(reason) != (status == "ok"), expected_reason)
    _require("throttle", throttle, REASONS.fullmatch(throttle), "words joined by bars")
    _require("started_at", started_at, records.is_utc_time(started_at), "a UTC timestamp")
    _require("sm_mhz", sm_mhz, " " not in sm_mhz, "one number")
    values = {
        metric: _numbers(metric[0], cell)
        for metric, cell in zip(metrics, cells, strict=True)
        if cell
    }
    clock = float(_numbers("sm_mhz", sm_mhz)[0]) if sm_mhz else None
    about = (int(verified), status, reason, throttle, clock, started_at)
    return Row(variant, case, int(number), values, *about)


def _require(column: str, text: str, is_valid: object, expected: str) -> None:
    if not is_valid:
        raise ValueError(f"{column}: expected {expected}, got {text!r}")


def _numbers(column: str, text: str) -> Values:
    """The numbers of a cell; ValueError for another text, or for a number out of range."""
    if _NUMBERS.fullmatch(text):
        values = np.array(text.split(" "), float)
        is_valid = (values == 0) | ((values >= SMALLEST) & (values <= records.MAX_NUMBER))
        if is_valid.all():
            return values
    expected = f"0 or numbers from {SMALLEST:g} to {records.MAX_NUMBER:g}"
    raise ValueError(f"{column}: expected {expected}, got {text[:200]!r}")
