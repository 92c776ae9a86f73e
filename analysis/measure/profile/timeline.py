"""A timeline of host calls and GPU work, recorded by CUPTI.

Nsight Systems would show more, but its recordings cannot be read everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from analysis.base.records import write_records
from analysis.results.store.records import HOST_CALL, Event

_BUFFER_BYTES = 8 * 2**20

Watch = Callable[[str, Callable[[], None]], None]
"""Runs a launch of the named variant under a profiler."""


@contextmanager
def recorder(out: Path) -> Iterator[Watch]:
    """Yield a function that records a launch into <out>/<variant>.csv."""
    from cupti import cupti

    activity = cupti.ActivityKind
    kinds = (activity.CONCURRENT_KERNEL, activity.MEMCPY, activity.MEMSET, activity.RUNTIME)
    events: list[tuple[int, int, int | None, str, str, int | None, int]] = []

    def keep(activities: list[Any]) -> None:
        for record in activities:
            if record.kind == activity.RUNTIME:
                name = cupti.get_callback_name(cupti.CallbackDomain.RUNTIME_API, record.cbid)
                what = (None, HOST_CALL, name.partition("_v")[0], None)
            elif record.kind == activity.CONCURRENT_KERNEL:
                what = (record.stream_id, "kernel", record.name, None)
            elif record.kind == activity.MEMCPY:
                name = f"memcpy {direction(record.copy_kind)}"
                what = (record.stream_id, "memcpy", name, record.bytes)
            else:
                what = (record.stream_id, "memset", "memset", record.bytes)
            events.append((record.start, record.end, *what, record.correlation_id))

    def watch(variant: str, launch: Callable[[], None]) -> None:
        for kind in kinds:
            cupti.activity_enable(kind)
        launch()  # the first traced launch pays for setting up the tracing
        cupti.activity_flush_all(1)
        events.clear()
        launch()
        for kind in kinds:
            cupti.activity_disable(kind)
        cupti.activity_flush_all(1)
        write_records(out / f"{variant}.csv", Event, normalised(variant, events), ".9f")

    cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), keep)
    yield watch


def direction(copy_kind: int) -> str:
    """Direction of a copy by CUPTI's number, such as HtoD from host to device."""
    from cupti import cupti

    name: str = cupti.ActivityMemcpyKind(copy_kind).name
    return name.replace("TO", "to")


def normalised(
    variant: str,
    events: list[tuple[int, int, int | None, str, str, int | None, int]],
) -> list[Event]:
    """Events in order of their start, in seconds since the first one instead of nanoseconds.
    Events that never started are dropped."""
    known = sorted((event for event in events if event[0] > 0), key=lambda event: event[:2])
    origin = known[0][0] if known else 0
    return [
        Event(variant, (one[0] - origin) * 1e-9, (one[1] - origin) * 1e-9, *one[2:])
        for one in known
    ]
