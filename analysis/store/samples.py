"""Raw samples on disk: one CSV per variant and machine, one row per sample, with COLUMNS."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import Final

from analysis import records
from analysis.errors import HotpathError
from analysis.files import write_whole
from analysis.reading import read_bytes, require_plain
from analysis.store.folders import NAME

STATUSES = ("ok", "skipped", "failed")
KEPT_RUNS = 5
SMALLEST: Final = 1e-15
"""No measured value but 0 is smaller, whatever its unit."""

_PAIR: Final = r"[a-z][a-z0-9_]*=[A-Za-z0-9_.-]+"
CASE: Final = re.compile(f"({_PAIR}(,{_PAIR})*)?")
_UNIT: Final = re.compile(r"[A-Za-z0-9/%^]{1,16}")
_REASONS: Final = re.compile(r"([a-z_]+(\|[a-z_]+)*)?")


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
    """The rows of the newest run, which come first; those of earlier runs are not looked at. None
    where one is malformed or it is no plain file."""
    try:
        require_plain(path, path.lstat())
        with path.open(newline="") as file:
            rows = map(parse_row, islice(csv.reader(file, strict=True), 1, None))
            return next((list(run) for _, run in groupby(rows, lambda sample: sample.run)), [])
    except (HotpathError, ValueError, csv.Error):
        return []


def parse_samples(path: Path, text: str) -> list[Sample]:
    """Every row of `text`, which is that of the file, as `read_samples` has it."""
    return records.parse_records(path, text, Sample, parse_row, MalformedSamples)


def parse_row(row: list[str]) -> Sample:
    """One row of the file; ValueError names the invalid column."""
    cell = records.cells(Sample, row)
    if cell["status"] not in STATUSES:
        raise ValueError(f"status: expected one of {STATUSES}, got {cell['status']!r}")
    value = _number("value", cell["value"]) if cell["value"] else None
    if (value is None) == (cell["status"] == "ok"):
        raise ValueError(f"value: {cell['value']!r} does not match status {cell['status']}")
    if bool(cell["reason"]) == (cell["status"] == "ok"):
        expected = "none" if cell["reason"] else "one"
        raise ValueError(f"reason: expected {expected} for status {cell['status']}")
    if cell["verified"] not in ("0", "1"):
        raise ValueError(f"verified: expected 0 or 1, got {cell['verified']!r}")
    return Sample(
        **{column: _word(column, cell[column]) for column in _WORDS},
        value=value,
        round=_count("round", cell["round"]),
        sample=_count("sample", cell["sample"]),
        verified=int(cell["verified"]),
        status=cell["status"],
        sm_mhz=_number("sm_mhz", cell["sm_mhz"]) if cell["sm_mhz"] else None,
    )


def _matched(pattern: re.Pattern[str]) -> Callable[[str], object]:
    def read(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError
        return text

    return read


_WORDS: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    **dict.fromkeys(("study", "variant", "metric"), ("a name", _matched(NAME))),
    "case": ("key=value pairs joined by commas", _matched(CASE)),
    "unit": ("a unit", _matched(_UNIT)),
    "throttle": ("words joined by bars", _matched(_REASONS)),
    **dict.fromkeys(("run", "started_at"), records.KINDS["UtcTime"]),
    "reason": records.KINDS["str"],
}
"""What is expected of the columns of text, and how they are read."""


@lru_cache(maxsize=2**12)
def _word(column: str, text: str) -> str:
    expected, read = _WORDS[column]
    try:
        read(text)
    except ValueError:
        raise ValueError(f"{column}: expected {expected}, got {text!r}") from None
    return text


def _number(column: str, text: str) -> float:
    try:
        value = records.finite_number(text)
    except ValueError:
        value = -1
    if value != 0 and value < SMALLEST:
        expected = f"0 or a number from {SMALLEST:g} to {records.LARGEST:g}"
        raise ValueError(f"{column}: expected {expected}, got {text!r}")
    return value


def _count(column: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise ValueError(f"{column}: expected a whole number, got {text!r}")
    return int(text)


def checksum(path: Path) -> str:
    """SHA-256 of a samples file in hex, as recorded in its provenance."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def text_checksum(text: str) -> str:
    """The checksum of a samples file with this text."""
    return hashlib.sha256(text.encode()).hexdigest()
