"""Hardware counters of a variant on disk: `<variant>.ncu.csv` next to its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from analysis.base.records import columns, parse_record, read_records, write_records
from analysis.results.store.samples import CASE

CAPTURED: Final = "captured"
"""Status of a capture that was made; any other says why it was not."""
NO_KERNEL: Final = "no kernel was seen in the launch that was profiled"
"""Why there is no capture where profiling worked and gave none."""


@dataclass(frozen=True)
class Counter:
    """One metric of one kernel launch of a variant, in the unit that the tool prints."""

    case: str
    kernel: str
    metric: str
    unit: str
    value: float


COLUMNS = columns(Counter)


def read_counters(path: Path) -> list[Counter]:
    """Counters as written by `write_counters`; HotpathError names the invalid file and line."""
    return read_records(path, Counter, _parse)


def _parse(row: list[str]) -> Counter:
    counter = parse_record(Counter, row)
    if not CASE.fullmatch(counter.case):
        raise ValueError(f"case: expected key=value pairs, got {counter.case!r}")
    if counter.value < 0:
        raise ValueError(f"value: expected a number of at least 0, got {counter.value}")
    return counter


def write_counters(path: Path, counters: Sequence[Counter]) -> None:
    write_records(path, Counter, counters)
