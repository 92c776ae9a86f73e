"""Hardware counters on disk: `<time>-<host>.counters.csv`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.base.records import columns
from analysis.results.store.samples import CASE

CAPTURED: Final = "captured"
"""Status of a capture that was made; any other says why it was not."""
NO_KERNEL: Final = "no kernel was seen in the launch that was profiled"
"""Why there is no capture where profiling worked and gave none."""


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
        if not CASE.fullmatch(self.case):
            raise ValueError(f"case: expected key=value pairs, got {self.case!r}")
        if self.value < 0:
            raise ValueError(f"value: expected a number of at least 0, got {self.value}")


COLUMNS = columns(Counter)
