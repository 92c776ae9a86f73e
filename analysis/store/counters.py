"""Hardware counters of a variant on disk: `<variant>.ncu.csv` next to its samples."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from analysis.errors import HotpathError


@dataclass(frozen=True)
class Counter:
    """One metric of one kernel launch of a variant, in the unit that the tool prints."""

    case: str
    kernel: str
    metric: str
    unit: str
    value: float


COLUMNS = tuple(field.name for field in fields(Counter))


def read_counters(path: Path) -> list[Counter]:
    """Counters as written by `write_counters`; HotpathError names the invalid file and line."""
    with path.open(newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            if tuple(next(rows, [])) != COLUMNS:
                raise ValueError(f"expected the columns {','.join(COLUMNS)}")
            return [
                Counter(case, kernel, metric, unit, float(value))
                for case, kernel, metric, unit, value in rows
            ]
        except (ValueError, TypeError, csv.Error) as error:
            raise HotpathError(f"{path}: line {max(rows.line_num, 1)}: {error}") from error


def write_counters(path: Path, counters: Sequence[Counter]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(astuple(counter) for counter in counters)
