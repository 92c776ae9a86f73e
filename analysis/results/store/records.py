"""Rows of the files beside samples: telemetry, hardware counters and timelines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.base.records import UtcTime, columns
from analysis.results.store.samples import CASE
from analysis.results.store.throttling import REASONS

CAPTURED: Final = "captured"
"""Status of a capture that was made; any other says why it was not."""
NO_KERNEL: Final = "no kernel was seen in the launch that was profiled"
"""Why there is no capture where profiling worked and gave none."""
HOST_CALL: Final = "host call"
KERNEL: Final = "kernel"
KINDS: Final = (HOST_CALL, KERNEL, "memcpy", "memset")


def _require_case(case: str) -> None:
    if not CASE.fullmatch(case):
        raise ValueError(f"case: expected key=value pairs, got {case!r}")


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
        _require_case(self.case)
        if not REASONS.fullmatch(self.throttle):
            raise ValueError(f"throttle: expected words joined by bars, got {self.throttle!r}")


@dataclass(frozen=True)
class Counter:
    """One metric of one kernel launch of a variant, in the unit that the tool prints."""

    variant: str
    case: str
    kernel: str
    metric: str
    unit: str
    value: float

    def check(self) -> None:
        _require_case(self.case)
        if self.value < 0:
            raise ValueError(f"value: expected a number of at least 0, got {self.value}")


@dataclass(frozen=True)
class Event:
    """One host call or piece of GPU work of a variant, in seconds since the first event."""

    variant: str
    start: float
    end: float
    stream: int | None
    kind: str
    name: str
    bytes: int | None
    correlation: int

    def check(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind: expected one of {KINDS}, got {self.kind!r}")
        if not 0 <= self.start <= self.end:
            raise ValueError(f"end: expected one from the start, {self.start}, got {self.end}")


READING_COLUMNS: Final = columns(Reading)
COUNTER_COLUMNS: Final = columns(Counter)
EVENT_COLUMNS: Final = columns(Event)
