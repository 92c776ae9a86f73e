"""Telemetry of a run on disk: `<run>.telemetry.csv`."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.base.records import UtcTime, columns
from analysis.results.store.samples import CASE
from analysis.results.store.throttling import REASONS


@dataclass(frozen=True)
class Reading:
    """One NVML sample during a cell. `gpu`: index among the measured GPUs."""

    variant: str
    case: str
    round: int
    time: UtcTime
    power_w: float | None
    energy_j: float | None
    temperature_c: float | None
    sm_mhz: float | None
    memory_mhz: float | None
    throttle: str
    pcie_rx_bytes_per_s: float | None
    pcie_tx_bytes_per_s: float | None
    gpu: int

    def check(self) -> None:
        if not CASE.fullmatch(self.case):
            raise ValueError(f"case: expected key=value pairs, got {self.case!r}")
        if not REASONS.fullmatch(self.throttle):
            raise ValueError(f"throttle: expected words joined by bars, got {self.throttle!r}")


COLUMNS = columns(Reading)
