"""Published figures of others, in SI units: results/published/<study>.csv."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from analysis.base.errors import require_known
from analysis.base.records import columns, finite_number, read_records
from analysis.base.units import SI
from analysis.results.store.folders import NAME, PUBLISHED
from analysis.results.store.samples import CASE, SMALLEST
from analysis.study import Study


@dataclass(frozen=True)
class PrintedRow:
    """A printed figure and its unit, as printed and as meant."""

    variant: str
    case: str
    metric: str
    printed: str
    unit_printed: str
    unit_meant: str
    source: str
    note: str

    def check(self) -> None:
        if not (NAME.fullmatch(self.variant) and CASE.fullmatch(self.case)):
            got = (self.variant, self.case)
            raise ValueError(f"variant, case: expected a name and key=value pairs, got {got}")
        if self.unit_meant not in SI:
            raise ValueError(f"unit_meant: expected one of {list(SI)}, got {self.unit_meant!r}")
        try:
            is_figure = finite_number(self.printed) >= SMALLEST
        except ValueError:
            is_figure = False
        if not is_figure:
            raise ValueError(f"printed: expected a number above 0, got {self.printed!r}")


@dataclass(frozen=True)
class PublishedRow(PrintedRow):
    """The same in SI units. `seconds` and `rate` (GB/s) are one statement: payload over the one
    gives the other; NaN where it is neither."""

    payload_bytes: int
    seconds: float
    rate: float

    @property
    def is_time(self) -> bool:
        return SI[self.unit_meant][0] == "s"


FILE_COLUMNS = list(columns(PrintedRow))
COLUMNS = list(columns(PublishedRow))
NOTHING: Final = pd.DataFrame(columns=COLUMNS)


def published_file(results: Path, study: Study) -> Path:
    return results / PUBLISHED / f"{study.name}.csv"


def load_published(results: Path, study: Study) -> pd.DataFrame:
    """Published rows of `study`, by PublishedRow; empty where there are none.

    A rate of operations gives the seconds of one. HotpathError names the invalid file and line.
    """
    path = published_file(results, study)
    if not path.exists():
        return NOTHING
    rows = read_records(path, PrintedRow)
    known = [study.payloads.get((row.variant, row.case), 0) for row in rows]
    table = pd.DataFrame(map(asdict, rows), columns=FILE_COLUMNS).assign(payload_bytes=known)
    seconds = [
        to_seconds(float(row.printed), row.unit_meant, size, f"{path.name}: unit_meant")
        for row, size in zip(rows, known, strict=True)
    ]
    table["seconds"] = pd.Series(seconds, dtype=float)
    table["rate"] = table["payload_bytes"] / table["seconds"] / 1e9
    table.loc[table["payload_bytes"] == 0, "rate"] = float("nan")
    return table[COLUMNS]


def to_seconds(value: float, unit: str, payload_bytes: int, where: str) -> float:
    """Seconds of one operation from a printed time or rate; NaN for a rate without payload."""
    require_known(where, unit, SI)
    base, scale = SI[unit]
    if base == "s":
        return value * scale
    if base == "1/s":
        return 1 / (value * scale)
    return payload_bytes / (value * scale) if payload_bytes else float("nan")


def best_statement(published: pd.DataFrame) -> pd.DataFrame:
    """One row per variant, case and source: the printed time if there is one, else the rate."""
    is_rate = published["unit_meant"].map(lambda unit: SI[unit][0] != "s")
    ordered = published.assign(is_rate=is_rate).sort_values("is_rate", kind="stable")
    return (
        ordered.drop_duplicates(["variant", "case", "source"]).drop(columns="is_rate").sort_index()
    )
