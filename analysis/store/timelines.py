"""A timeline of a variant on disk: `<variant>.timeline.csv` next to its samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analysis.records import columns, read_records, write_records


@dataclass(frozen=True)
class Event:
    """One host call or piece of GPU work of a variant, in seconds since the first event."""

    start: float
    end: float
    stream: int | None
    kind: str
    name: str
    bytes: int | None
    correlation: int


COLUMNS = columns(Event)


def read_events(path: Path) -> list[Event]:
    """Events as written by `write_events`; HotpathError names the invalid file and line."""
    return read_records(path, Event)


def write_events(path: Path, events: list[Event]) -> None:
    write_records(path, Event, events, number=".9f")
