"""Activities of the GPU by the driver's tracing (CUPTI), in the process that makes them."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from cupti import cupti

from analysis.results.store.records import HOST_CALL

ACTIVITY: Final = cupti.ActivityKind
Activity = tuple[int, int, int | None, str, str, int | None, int]
"""Start and end in nanoseconds, then stream, kind, name, bytes and correlation as of `Event`."""
_BUFFER_BYTES = 8 * 2**20
_traced: list[Activity] = []


def traced(launch: Callable[[], None], kinds: Sequence[Any]) -> list[Activity]:
    """Activities of these kinds that `launch` makes and waits for, in the order of recording."""
    _register()
    for kind in kinds:
        cupti.activity_enable(kind)
    try:
        launch()  # the first traced launch pays for setting up the tracing
        cupti.activity_flush_all(1)
        _traced.clear()
        launch()
    finally:
        for kind in kinds:
            cupti.activity_disable(kind)
        cupti.activity_flush_all(1)
    return list(_traced)


def copy_seconds(launch: Callable[[], None]) -> list[float]:
    """Seconds of every copy that `launch` makes and waits for, in the order of recording."""
    return [(end - start) * 1e-9 for start, end, *_ in traced(launch, [ACTIVITY.MEMCPY])]


@cache
def _register() -> None:
    """Have CUPTI hand its records over; once in a process."""
    cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), _keep)


def _keep(records: list[Any]) -> None:
    for record in records:
        if record.kind == ACTIVITY.RUNTIME:
            name = cupti.get_callback_name(cupti.CallbackDomain.RUNTIME_API, record.cbid)
            what = (None, HOST_CALL, name.partition("_v")[0], None)
        elif record.kind == ACTIVITY.CONCURRENT_KERNEL:
            what = (record.stream_id, "kernel", record.name, None)
        elif record.kind == ACTIVITY.MEMCPY:
            way = cupti.ActivityMemcpyKind(record.copy_kind).name.replace("TO", "to")  # HtoD
            what = (record.stream_id, "memcpy", f"memcpy {way}", record.bytes)
        else:
            what = (record.stream_id, "memset", "memset", record.bytes)
        _traced.append((record.start, record.end, *what, record.correlation_id))
