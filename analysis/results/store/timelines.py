"""A timeline of a variant on disk: `<variant>.timeline.csv` next to its samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from analysis.base.records import columns, parse_record, read_records, write_records

HOST_CALL = "host call"
KERNEL = "kernel"
KINDS = (HOST_CALL, KERNEL, "memcpy", "memset")


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
    return read_records(path, Event, _parse)


def _parse(row: list[str]) -> Event:
    event = parse_record(Event, row)
    if event.kind not in KINDS:
        raise ValueError(f"kind: expected one of {KINDS}, got {event.kind!r}")
    if not 0 <= event.start <= event.end:
        raise ValueError(f"end: expected one from the start, {event.start}, got {event.end}")
    return event


def write_events(path: Path, events: list[Event]) -> None:
    write_records(path, Event, events, number=".9f")
