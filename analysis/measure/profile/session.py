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
from typing import Final

import numpy as np
from cuda.bindings import runtime as cudart

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.base.records import write_records
from analysis.measure.memory import cuda, new_stream
from analysis.measure.rig import Rig
from analysis.measure.tracing import ACTIVITY, Activity, traced
from analysis.results.store.records import Event
from analysis.study import find_study

KINDS: Final = (ACTIVITY.CONCURRENT_KERNEL, ACTIVITY.MEMCPY, ACTIVITY.MEMSET, ACTIVITY.RUNTIME)
"""Kinds of activities in a timeline."""


def count(variant: str, launch: Callable[[], None]) -> None:
    """Launch under Nsight Compute, which starts with profiling off and prefixes kernel names with
    the NVTX range."""
    import nvtx

    with nvtx.annotate(variant):
        cuda(cudart.cudaProfilerStart())
        launch()
        cuda(cudart.cudaProfilerStop())


def normalised(variant: str, events: list[Activity]) -> list[Event]:
    """Events in order of their start, in seconds since the first one instead of nanoseconds.
    Events that never started are dropped."""
    known = sorted((event for event in events if event[0] > 0), key=lambda event: event[:2])
    since = known[0][0] if known else 0
    return [Event(variant, (e[0] - since) * 1e-9, (e[1] - since) * 1e-9, *e[2:]) for e in known]


def main(kind: str, study_name: str, modules: str, out: str, *names: str) -> None:
    """Set up, check and profile each of `names` in turn; HotpathError if an output is wrong."""
    study = find_study(study_name)
    replaced = {captured.case: captured.constants for captured in study.captured}
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
        if kind == "counters":
            count(name, bound.launch)
        else:
            events = normalised(name, traced(bound.launch, KINDS))
            write_records(Path(out) / f"{name}.csv", Event, events, ".9f")


if __name__ == "__main__":
    fail_in_one_line(lambda: main(*sys.argv[1:]))
