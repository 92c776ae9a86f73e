"""Telemetry of a variant on disk: `<variant>.telemetry.csv` next to its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.base.records import UtcTime, columns, parse_record, read_records
from analysis.results.store.samples import CASE
from analysis.results.store.throttling import REASONS


@dataclass(frozen=True)
class Reading:
    """What NVML said of a GPU at one time, in the cell that was measured then; `gpu` is its place
    among those in use, and not in older files."""

    run: UtcTime
    round: int
    case: str
    time: UtcTime
    power_w: float | None
    energy_j: float | None
    temperature_c: float | None
    sm_mhz: float | None
    memory_mhz: float | None
    throttle: str
    pcie_rx_bytes_per_s: float | None
    pcie_tx_bytes_per_s: float | None
    gpu: int | None = None


COLUMNS = columns(Reading)


def read_telemetry(path: Path) -> list[Reading]:
    """Readings as they were written; HotpathError names the invalid file and line."""
    return read_records(path, Reading, parse_reading)


def parse_reading(row: Sequence[str]) -> Reading:
    """One row; ValueError names the column that is wrong."""
    reading = parse_record(Reading, row)
    if not CASE.fullmatch(reading.case):
        raise ValueError(f"case: expected key=value pairs, got {reading.case!r}")
    if not REASONS.fullmatch(reading.throttle):
        raise ValueError(f"throttle: expected words joined by bars, got {reading.throttle!r}")
    return reading
