"""Raw samples on disk: one CSV per variant and machine, one row per sample, with COLUMNS."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from itertools import groupby, islice
from pathlib import Path

from analysis import records
from analysis.errors import HotpathError
from analysis.files import write_whole

STATUSES = ("ok", "skipped", "failed")
KEPT_RUNS = 5
MACHINE_LIMIT_BYTES = 16 * 2**20

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True)
class Sample:
    """One row. `value` is in `unit` (SI base units), None if the case was skipped or failed."""

    study: str
    variant: str
    case: str
    metric: str
    unit: str
    value: float | None
    run: str
    round: int
    sample: int
    verified: int
    status: str
    reason: str
    throttle: str
    sm_mhz: float | None
    started_at: str


COLUMNS = records.columns(Sample)


class MalformedSamples(HotpathError):
    """A row that does not match COLUMNS; the message names the file and the line."""


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Write `samples`, replacing the file in one step."""
    write_whole(path, to_text(samples))


def to_text(samples: Iterable[Sample]) -> str:
    """The file of these samples, numbers to seven digits."""
    return records.to_text(COLUMNS, map(astuple, samples), number=".7g")


def read_samples(path: Path) -> list[Sample]:
    """Every row of a file; MalformedSamples has the line number of the first invalid row."""
    return records.read_records(path, Sample, parse_row, MalformedSamples)


def read_newest_run(path: Path) -> list[Sample]:
    """The rows of the newest run, which come first; those of earlier runs are not looked at."""
    with path.open(newline="") as file:
        rows = map(parse_row, islice(csv.reader(file, strict=True), 1, None))
        return next((list(run) for _, run in groupby(rows, lambda sample: sample.run)), [])


def parse_row(row: list[str]) -> Sample:
    """One row of the file; ValueError names the invalid column."""
    cell = records.cells(Sample, row)
    if cell["status"] not in STATUSES:
        raise ValueError(f"status: expected one of {STATUSES}, got {cell['status']!r}")
    value = _number(cell, "value") if cell["value"] else None
    if (value is None) == (cell["status"] == "ok"):
        raise ValueError(f"value: {cell['value']!r} does not match status {cell['status']}")
    if cell["status"] != "ok" and not cell["reason"]:
        raise ValueError(f"reason: expected one for status {cell['status']}, got none")
    if cell["verified"] not in ("0", "1"):
        raise ValueError(f"verified: expected 0 or 1, got {cell['verified']!r}")
    for column in ("run", "started_at"):
        if not _TIME.fullmatch(cell[column]):
            raise ValueError(f"{column}: expected a UTC time, got {cell[column]!r}")
    return Sample(
        study=cell["study"],
        variant=cell["variant"],
        case=cell["case"],
        metric=cell["metric"],
        unit=cell["unit"],
        value=value,
        run=cell["run"],
        round=_count(cell, "round"),
        sample=_count(cell, "sample"),
        verified=int(cell["verified"]),
        status=cell["status"],
        reason=cell["reason"],
        throttle=cell["throttle"],
        sm_mhz=_number(cell, "sm_mhz") if cell["sm_mhz"] else None,
        started_at=cell["started_at"],
    )


def _number(cell: dict[str, str], column: str) -> float:
    try:
        value = float(cell[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{column}: expected a number of at least 0, got {cell[column]!r}")
    return value


def _count(cell: dict[str, str], column: str) -> int:
    if not cell[column].isdecimal():
        raise ValueError(f"{column}: expected a whole number, got {cell[column]!r}")
    return int(cell[column])


def checksum(path: Path) -> str:
    """SHA-256 of a samples file in hex, as recorded in its provenance."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def text_checksum(text: str) -> str:
    """The checksum of a samples file with this text."""
    return hashlib.sha256(text.encode()).hexdigest()
