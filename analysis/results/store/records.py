"""Rows of the files beside samples: telemetry, hardware counters and timelines."""

from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from analysis.base.errors import FieldError
from analysis.base.keys import UtcTime
from analysis.results.store.keys import Amount, CaseId, Megahertz, Reasons, Seconds

CAPTURED: Final = "captured"
"""Status of a capture that was made; any other says why it was not."""
HOST_CALL: Final = "host call"


@dataclass(frozen=True)
class Reading:
    """One NVML sample during a cell. `gpu`: index among the measured GPUs."""

    variant: str
    case: CaseId
    round: int
    time: UtcTime
    power_w: Amount | None
    energy_j: Amount | None
    temperature_c: Amount | None
    sm_mhz: Megahertz | None
    memory_mhz: Megahertz | None
    throttle: Reasons
    pcie_rx_bytes_per_s: Amount | None
    pcie_tx_bytes_per_s: Amount | None
    gpu: int


@dataclass(frozen=True)
class Counter:
    """One metric of one kernel launch of a variant, in the unit that the tool prints."""

    variant: str
    case: CaseId
    kernel: str
    metric: str
    unit: str
    value: Amount


@dataclass(frozen=True)
class Event:
    """One host call or piece of GPU work of a variant, in seconds since the first event."""

    variant: str
    start: Seconds
    end: Seconds
    stream: int | None
    kind: Annotated[str, Field(pattern="^(host call|kernel|memcpy|memset)$")]
    name: str
    bytes: int | None
    correlation: int

    def check(self) -> None:
        if self.end < self.start:
            raise FieldError("end", f"a time from the start, {self.start}, on", self.end)
