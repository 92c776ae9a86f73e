"""A timeline of a variant on disk: `<variant>.timeline.csv` next to its samples."""

from __future__ import annotations

import csv
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from analysis.errors import HotpathError


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


COLUMNS = tuple(field.name for field in fields(Event))


def read_events(path: Path) -> list[Event]:
    """Events as written by `write_events`; HotpathError names the invalid file and line."""
    with path.open(newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            if tuple(next(rows, [])) != COLUMNS:
                raise ValueError(f"expected the columns {','.join(COLUMNS)}")
            return [_event(*row) for row in rows]
        except (ValueError, TypeError, csv.Error) as error:
            raise HotpathError(f"{path}: line {max(rows.line_num, 1)}: {error}") from error


def _event(
    start: str, end: str, stream: str, kind: str, name: str, size: str, correlation: str
) -> Event:
    return Event(
        start=float(start),
        end=float(end),
        stream=int(stream) if stream else None,
        kind=kind,
        name=name,
        bytes=int(size) if size else None,
        correlation=int(correlation),
    )


def write_events(path: Path, events: list[Event]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for event in events:
            row = [f"{v:.9f}" if isinstance(v, float) else v for v in astuple(event)]
            writer.writerow(["" if value is None else value for value in row])
