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
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
from pydantic import Field, PlainValidator

from analysis.base import records
from analysis.base.errors import FieldError, HotpathError
from analysis.base.keys import NAME, UtcTime
from analysis.base.reading import read_text
from analysis.results.store import keys

CSV_LIMIT_BYTES: Final = 4 * 2**20
"""Of every CSV file of results."""
MACHINE_LIMIT_SAMPLES: Final = 2**20
"""Of all runs on a machine: a sample takes a hundred times as much memory as in its file."""
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
NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
_NUMBERS: Final = re.compile(f"{NUMBER.pattern}(?: {NUMBER.pattern})*")

Metric = tuple[str, str]
"""Name and unit."""
Values = npt.NDArray[np.float64]


def _values(cells: Mapping[Metric, str]) -> Mapping[Metric, Values]:
    """The samples in the cells of metrics that have any."""
    found = {}
    for (name, unit), text in cells.items():
        largest = keys.LONGEST_S if unit == "s" else keys.LARGEST
        values = np.array(text.split(" ") if _NUMBERS.fullmatch(text) else [], float)
        is_within = (values == 0) | ((values >= keys.SMALLEST) & (values <= largest))
        if values.size and is_within.all():
            found[name, unit] = values
        elif text:
            limits = f"0 or numbers from {keys.SMALLEST:g} to {largest:g} {unit}"
            raise FieldError(name, limits, text[:200])
    return found


@dataclass(frozen=True)
class Row:
    """A variant and case in one round; `values` are its samples in SI units by metric. A case that
    was skipped or has failed has a reason instead."""

    variant: keys.Name
    case: keys.CaseId
    round: keys.Few
    values: Annotated[Mapping[Metric, Sequence[float] | Values], PlainValidator(_values)]
    verified: Annotated[int, Field(ge=0, le=1)]
    status: Annotated[str, Field(pattern="^(ok|skipped|failed)$")]
    reason: keys.Text
    throttle: keys.Reasons
    sm_mhz: keys.Megahertz | None
    started_at: UtcTime

    def check(self) -> None:
        """FieldError unless it has either values or a reason."""
        if not bool(self.values) == (self.status == "ok") == (not self.reason):
            expected = "ok with values, or another with a reason only"
            raise FieldError("status", expected, (self.status, self.reason))

    @property
    def cell(self) -> tuple[str, str]:
        return self.variant, self.case

    @property
    def key(self) -> tuple[str, str, int]:
        return self.variant, self.case, self.round


_COLUMNS: Final = records.columns(Row)
_BEFORE, _AFTER = _COLUMNS[:3], _COLUMNS[4:]
FILE_COLUMNS: Final = (*_BEFORE, "<metric> [<unit>]", *_AFTER)
"""Columns of a file; the one in angle brackets stands for one per metric."""


def to_text(rows: Iterable[Row]) -> str:
    """The file of these rows."""
    rows = list(rows)
    metrics = list(dict.fromkeys(metric for row in rows for metric in row.values))
    header = [*_BEFORE, *(f"{name} [{unit}]" for name, unit in metrics), *_AFTER]
    table = []
    for row in rows:
        cells = [row.values.get(metric, ()) for metric in metrics]
        texts = (" ".join(f"{value:{_DIGITS}}" for value in cell) for cell in cells)
        table.append([*row.key, *texts, *(getattr(row, name) for name in _AFTER)])
    return records.to_text(header, table, _DIGITS)


def read_rows(path: Path) -> list[Row]:
    """Every row of a file; HotpathError has the line number of the first invalid row."""
    return parse_rows(path, read_text(path, CSV_LIMIT_BYTES))


def parse_rows(path: Path, text: str) -> list[Row]:
    """Every row in `text`, the content of the file; errors as of `read_rows`."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: dict[tuple[str, str, int], Row] = {}
    try:
        header = next(reader, [])
        end = len(header) - len(_AFTER)
        found = [match.groups() for name in header[3:end] if (match := _METRIC.fullmatch(name))]
        named = [*_BEFORE, *(f"{name} [{unit}]" for name, unit in found), *_AFTER]
        if header != named or len({name for name, _ in found}) < len(found):
            raise ValueError(f"expected the columns {','.join(FILE_COLUMNS)}, every metric once")
        for line in reader:
            if len(line) != len(header):
                raise ValueError(f"expected {len(header)} fields, got {len(line)}")
            values = dict(zip(found, line[3:end], strict=True))
            cells = zip(_COLUMNS, [*line[:3], values, *line[end:]], strict=True)
            row = records.parse_record(Row, dict(cells))
            if rows.setdefault(row.key, row) is not row:
                raise FieldError("variant, case, round", "every row once", row.key)
    except (HotpathError, ValueError, csv.Error) as fault:
        raise HotpathError(f"{path}: line {max(reader.line_num, 1)}: {fault}") from fault
    return [*rows.values()]
