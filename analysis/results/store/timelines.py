"""Timelines on disk: `<time>-<host>.timeline.csv`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analysis.base.records import columns, write_records

HOST_CALL = "host call"
KERNEL = "kernel"
KINDS = (HOST_CALL, KERNEL, "memcpy", "memset")


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


COLUMNS = columns(Event)


def write_events(path: Path, events: list[Event]) -> None:
    write_records(path, Event, events, number=".9f")
