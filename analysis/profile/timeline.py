"""A timeline of host calls and GPU work, recorded by CUPTI.

Nsight Systems would show the same and more, but its recordings cannot be read everywhere.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from analysis.errors import HotpathError


@dataclass(frozen=True)
class Event:
    """One host call or piece of GPU work of a variant; seconds from its first event."""

    start: float
    end: float
    stream: int | None
    kind: str
    name: str
    bytes: int | None
    correlation: int


COLUMNS = tuple(field.name for field in fields(Event))

_BUFFER_BYTES = 8 * 2**20


@contextmanager
def recorder(out: Path) -> Iterator[Callable[[str, Callable[[], None]], None]]:
    """Yields a function that records what a launch does into <out>/<variant>.timeline.csv."""
    from cupti import cupti

    activity = cupti.ActivityKind
    kinds = (activity.CONCURRENT_KERNEL, activity.MEMCPY, activity.MEMSET, activity.RUNTIME)
    names = {activity.MEMCPY: "memcpy", activity.MEMSET: "memset"}
    events: list[tuple[int, int, int | None, str, str, int | None, int]] = []

    def keep(activities: list[Any]) -> None:
        for record in activities:
            if record.kind == activity.RUNTIME:
                name = cupti.get_callback_name(cupti.CallbackDomain.RUNTIME_API, record.cbid)
                what = (None, "host call", name.partition("_v")[0], None)
            elif record.kind == activity.CONCURRENT_KERNEL:
                what = (record.stream_id, "kernel", record.name, None)
            else:
                name = names[record.kind]
                what = (record.stream_id, name, name, record.bytes)
            events.append((record.start, record.end, *what, record.correlation_id))

    def watch(variant: str, launch: Callable[[], None]) -> None:
        for kind in kinds:
            cupti.activity_enable(kind)
        launch()  # the first launch that is traced pays for the tracing
        cupti.activity_flush_all(1)
        events.clear()
        launch()
        for kind in kinds:
            cupti.activity_disable(kind)
        cupti.activity_flush_all(1)
        write_events(out / f"{variant}.timeline.csv", normalised(events))

    cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), keep)
    yield watch


def normalised(
    events: list[tuple[int, int, int | None, str, str, int | None, int]],
) -> list[Event]:
    """Events in order of their start, nanoseconds made seconds from the first; none that never
    started."""
    known = sorted((event for event in events if event[0] > 0), key=lambda event: event[:2])
    origin = known[0][0] if known else 0
    return [
        Event((start - origin) * 1e-9, (end - origin) * 1e-9, stream, kind, name, size, correlation)
        for start, end, stream, kind, name, size, correlation in known
    ]


def read_events(path: Path) -> list[Event]:
    """Events as `write_events` left them; HotpathError names the file and line at fault."""
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
