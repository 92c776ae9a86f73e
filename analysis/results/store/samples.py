"""Raw samples on disk: one CSV per variant and machine, one row per case and round of a run.

A metric is a column, `<metric> [<unit>]`. Its cell holds the samples in their order, separated by
spaces. The path names the study and the variant.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from analysis.base import records
from analysis.base.errors import HotpathError
from analysis.base.reading import read_bytes, read_text, require_plain
from analysis.results.store.folders import NAME
from analysis.results.store.throttling import REASONS

STATUSES = ("ok", "skipped", "failed")
KEPT_RUNS = 8
MACHINE_LIMIT_SAMPLES: Final = 2**20
"""Two bytes of a file can be a sample, which takes a hundred times as much memory."""
SMALLEST: Final = 1e-15
"""No measured value but 0 is smaller, whatever its unit."""

_NUMBER: Final = ".7g"
"""The format of numbers: finer than any clock."""
_PAIR: Final = r"[a-z][a-z0-9_]*=[A-Za-z0-9_.-]+"
CASE: Final = re.compile(f"({_PAIR}(,{_PAIR})*)?")
_UNIT: Final = re.compile(r"[A-Za-z0-9/%^]{1,16}")


@dataclass(frozen=True)
class Sample:
    """One sample. `value` is in `unit` (SI base units).

    A case that was skipped or has failed has one, without a value, a metric or a unit.
    """

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
_FIRST: Final = ("case", "run", "round")
_LAST: Final = ("verified", "status", "reason", "throttle", "sm_mhz", "started_at")
FILE_COLUMNS: Final = (*_FIRST, "<metric> [<unit>]", *_LAST)
"""Columns of a file; the one in angle brackets stands for one per metric."""
_FACTS: Final = attrgetter(*_FIRST, *_LAST)
_cell: Final = attrgetter(*_FIRST)
_METRIC: Final = re.compile(rf"({NAME.pattern}) \[({_UNIT.pattern})\]")

Metric = tuple[str, str]
"""Name and unit."""


class MalformedSamples(HotpathError):
    """A row that does not match FILE_COLUMNS; the message names the file and the line."""


def to_text(samples: Iterable[Sample]) -> str:
    """The file of these samples of one variant, rows in the order of their first samples.

    ValueError if a file cannot hold them: the samples of a metric in a case and round are numbered
    from 0 on and share everything but their value.
    """
    rows: dict[tuple[Any, ...], dict[Metric, list[str]]] = {}
    for sample in samples:
        metrics = rows.setdefault(_FACTS(sample), {})
        if sample.value is None:
            continue
        texts = metrics.setdefault((sample.metric, sample.unit), [])
        if sample.sample != len(texts):
            raise ValueError(f"sample: expected {len(texts)}, got {sample}")
        texts.append(f"{sample.value:{_NUMBER}}")
    place = len(_FIRST)
    if len({facts[:place] for facts in rows}) < len(rows):
        raise ValueError(f"expected one row per {', '.join(_FIRST)}, got several")
    columns = list(dict.fromkeys(chain.from_iterable(rows.values())))
    header = (*_FIRST, *(f"{name} [{unit}]" for name, unit in columns), *_LAST)
    table = (
        (*facts[:place], *(" ".join(metrics.get(one, ())) for one in columns), *facts[place:])
        for facts, metrics in rows.items()
    )
    return records.to_text(header, table, _NUMBER)


def read_samples(path: Path) -> list[Sample]:
    """Every sample of a file; MalformedSamples has the line number of the first invalid row."""
    return parse_samples(path, read_text(path))


def parse_samples(path: Path, text: str) -> list[Sample]:
    """Every sample in `text`, the content of the file; errors as of `read_samples`."""
    return list(chain.from_iterable(_rows(path, io.StringIO(text, newline=""))))


def read_newest_run(path: Path) -> list[Sample]:
    """The samples of the newest run, which come first; those of earlier runs are not looked at.
    None where one is malformed or it is no plain file."""
    try:
        require_plain(path, path.lstat())
        with path.open(newline="") as file:
            runs = groupby(_rows(path, file), key=lambda row: row[0].run)
            return next((list(chain.from_iterable(rows)) for _, rows in runs), [])
    except (HotpathError, OSError):
        return []


def line_of(path: Path, place: int) -> int:
    """The line of a sample, by its place among all samples of the file, from 0."""
    rows = _rows(path, io.StringIO(read_text(path), newline=""))
    return 2 + sum(end <= place for end in accumulate(map(len, rows)))


def _rows(path: Path, lines: Iterable[str]) -> Iterator[list[Sample]]:
    """The samples of each line of the file, never none; MalformedSamples at the first that is
    invalid."""
    reader = csv.reader(lines, strict=True)
    cells: set[tuple[str, ...]] = set()
    count = 0
    try:
        metrics = _metrics(next(reader, []))
        for row in reader:
            samples = _parse_row(path, metrics, row)
            count += len(samples)
            if count > MACHINE_LIMIT_SAMPLES:
                raise ValueError(f"expected at most {MACHINE_LIMIT_SAMPLES} samples, got more")
            if (cell := _cell(samples[0])) in cells:
                raise ValueError(f"{', '.join(_FIRST)}: expected every row once, got {cell} again")
            cells.add(cell)
            yield samples
    except (ValueError, csv.Error) as fault:
        raise MalformedSamples(f"{path}: line {max(reader.line_num, 1)}: {fault}") from fault


def _metrics(header: Sequence[str]) -> list[Metric]:
    """Name and unit of each metric's column; ValueError if a column is not one of a file's."""
    first, last = len(_FIRST), len(header) - len(_LAST)
    columns = [_METRIC.fullmatch(column) for column in header[first:last]]
    metrics = [(match[1], match[2]) for match in columns if match]
    is_known = tuple(header[:first]) == _FIRST and tuple(header[last:]) == _LAST
    if last < first or not is_known or not len({name for name, _ in metrics}) == len(columns):
        raise ValueError(f"expected the columns {','.join(FILE_COLUMNS)}, every metric once")
    return metrics


def _parse_row(path: Path, metrics: Sequence[Metric], row: Sequence[str]) -> list[Sample]:
    """The samples of one row of the file; ValueError names the invalid column."""
    first, last = len(_FIRST), len(_FIRST) + len(metrics)
    if len(row) != last + len(_LAST):
        raise ValueError(f"expected {last + len(_LAST)} fields, got {len(row)}")
    cells = row[first:last]
    facts = _facts(dict(zip((*_FIRST, *_LAST), (*row[:first], *row[last:]), strict=True)))
    if any(cells) != (facts["status"] == "ok"):
        expected = "ok" if any(cells) else f"one of {STATUSES[1:]}"
        raise ValueError(f"status: expected {expected} by the values, got {facts['status']}")
    facts |= {"study": path.parent.name, "variant": path.stem}
    if facts["status"] != "ok":
        return [Sample(**facts, metric="", unit="", value=None, sample=0)]
    return [
        Sample(**facts, metric=metric, unit=unit, value=value, sample=number)
        for (metric, unit), cell in zip(metrics, cells, strict=True)
        if cell
        for number, value in enumerate(_number(metric, text) for text in cell.split(" "))
    ]


def _facts(texts: dict[str, str]) -> dict[str, Any]:
    """The columns that all samples of a row share; ValueError names the invalid one."""
    if texts["status"] not in STATUSES:
        raise ValueError(f"status: expected one of {STATUSES}, got {texts['status']!r}")
    if bool(texts["reason"]) == (texts["status"] == "ok"):
        expected = "none" if texts["reason"] else "one"
        raise ValueError(f"reason: expected {expected} for status {texts['status']}")
    if texts["verified"] not in ("0", "1"):
        raise ValueError(f"verified: expected 0 or 1, got {texts['verified']!r}")
    return {
        **{column: _word(column, texts[column]) for column in _WORDS},
        "round": _count("round", texts["round"]),
        "verified": int(texts["verified"]),
        "status": texts["status"],
        "sm_mhz": _number("sm_mhz", texts["sm_mhz"]) if texts["sm_mhz"] else None,
    }


def write_round(path: Path, samples: Iterable[Sample]) -> None:
    """Write the samples of a round, of several variants: a row each, with COLUMNS."""
    records.write_records(path, Sample, samples, _NUMBER)


def read_round(path: Path) -> list[Sample]:
    """Every sample of a round."""
    return records.read_records(path, Sample, error=MalformedSamples)


def _matched(pattern: re.Pattern[str]) -> Callable[[str], object]:
    def read(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError
        return text

    return read


_WORDS: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "case": ("key=value pairs joined by commas", _matched(CASE)),
    "throttle": ("words joined by bars", _matched(REASONS)),
    **dict.fromkeys(("run", "started_at"), records.KINDS["UtcTime"]),
    "reason": records.KINDS["str"],
}
"""Text columns: the expected form and its reader."""


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
        expected = f"0 or a number from {SMALLEST:g} to {records.MAX_NUMBER:g}"
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
