"""The time of a copy from the driver's tracing (CUPTI), in the process that times it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cupti import cupti

_BUFFER_BYTES = 2**20
_traced: list[tuple[int, int]] = []
_is_registered = False


def copy_seconds(launch: Callable[[], None]) -> list[float]:
    """Seconds of every copy that `launch` makes and waits for, in the order of recording."""
    global _is_registered
    if not _is_registered:
        cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), _keep)
        _is_registered = True
    cupti.activity_enable(cupti.ActivityKind.MEMCPY)
    try:
        launch()  # the first traced launch pays for setting up the tracing
        cupti.activity_flush_all(1)
        _traced.clear()
        launch()
        cupti.activity_flush_all(1)
    finally:
        cupti.activity_disable(cupti.ActivityKind.MEMCPY)
    return [(end - start) * 1e-9 for start, end in _traced]


def _keep(activities: list[Any]) -> None:
    _traced.extend((activity.start, activity.end) for activity in activities)
