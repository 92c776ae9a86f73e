"""One process in which every variant of a study runs its case once, under a profiler.

    python -m analysis.measure.profile.session counters|timeline STUDY MODULES OUT VARIANT...

Each output is checked before the profiled launch. Timelines are CUPTI's: Nsight Systems would show
more, but its recordings cannot be read everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import runtime as cudart

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.base.records import write_records
from analysis.measure.memory import cuda, new_stream
from analysis.measure.rig import Rig
from analysis.results.store.records import HOST_CALL, Event
from analysis.study import find_study

_BUFFER_BYTES = 8 * 2**20

Watch = Callable[[str, Callable[[], None]], None]
"""Runs a launch of the named variant under a profiler."""
RawEvent = tuple[int, int, int | None, str, str, int | None, int]
"""Start and end in nanoseconds, then the fields of Event from `stream` on."""


def count(variant: str, launch: Callable[[], None]) -> None:
    """Launch under Nsight Compute, which starts with profiling off and prefixes kernel names with
    the NVTX range."""
    import nvtx

    with nvtx.annotate(variant):
        cuda(cudart.cudaProfilerStart())
        launch()
        cuda(cudart.cudaProfilerStop())


def recorder(out: Path) -> Watch:
    """A function that records a launch into <out>/<variant>.csv."""
    from cupti import cupti  # nothing else may profile a process under Nsight Compute

    activity = cupti.ActivityKind
    kinds = (activity.CONCURRENT_KERNEL, activity.MEMCPY, activity.MEMSET, activity.RUNTIME)
    events: list[RawEvent] = []

    def keep(activities: list[Any]) -> None:
        for record in activities:
            if record.kind == activity.RUNTIME:
                name = cupti.get_callback_name(cupti.CallbackDomain.RUNTIME_API, record.cbid)
                what = (None, HOST_CALL, name.partition("_v")[0], None)
            elif record.kind == activity.CONCURRENT_KERNEL:
                what = (record.stream_id, "kernel", record.name, None)
            elif record.kind == activity.MEMCPY:
                way = cupti.ActivityMemcpyKind(record.copy_kind).name.replace("TO", "to")  # HtoD
                what = (record.stream_id, "memcpy", f"memcpy {way}", record.bytes)
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
    return watch


def normalised(variant: str, events: list[RawEvent]) -> list[Event]:
    """Events in order of their start, in seconds since the first one instead of nanoseconds.
    Events that never started are dropped."""
    known = sorted((event for event in events if event[0] > 0), key=lambda event: event[:2])
    since = known[0][0] if known else 0
    return [Event(variant, (e[0] - since) * 1e-9, (e[1] - since) * 1e-9, *e[2:]) for e in known]


def main(kind: str, study_name: str, modules: str, out: str, *names: str) -> None:
    """Set up, check and profile each of `names` in turn; HotpathError if an output is wrong."""
    study = find_study(study_name)
    replaced = {captured.case: captured.constants for captured in study.captured}
    watch = count if kind == "counters" else recorder(Path(out))
    rig = Rig(study, Path(modules), np.random.default_rng(0))
    stream = new_stream()
    for name in names:
        variant = study.variant(name)
        case = next(case for case in variant.cases if case.id == study.captured_case(variant))
        constants = {**variant.constants, **replaced.get(case.id, {})}
        variant = replace(variant, constants=constants)
        bound = rig.bind(variant, case, stream)
        bound.poison_and_launch()
        if wrong := bound.check():
            raise HotpathError(f"{study.name}/{name}: wrong output: {wrong}")
        watch(name, bound.launch)


if __name__ == "__main__":
    fail_in_one_line(lambda: main(*sys.argv[1:]))
