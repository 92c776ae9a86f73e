"""One process in which every variant of a study runs its case once, under a profiler.

    python -m analysis.measure.profile.session counters|timeline STUDY CASE MODULES OUT VARIANT...

Each output is checked before the profiled launch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from cuda.bindings import runtime as cudart

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.measure.memory import cuda
from analysis.measure.profile import timeline
from analysis.measure.rig import Rig
from analysis.study import Study, find_study

Watch = Callable[[str, Callable[[], None]], None]
"""Runs a launch of the named variant under the profiler."""


def under_ncu(variant: str, launch: Callable[[], None]) -> None:
    """Launch under Nsight Compute, which starts with profiling off and prefixes kernel names with
    the NVTX range."""
    import nvtx

    with nvtx.annotate(variant):
        cuda(cudart.cudaProfilerStart())
        launch()
        cuda(cudart.cudaProfilerStop())


def run(study: Study, case_id: str, names: list[str], modules: Path, watch: Watch) -> None:
    """Set up, check and profile each of `names` in turn; HotpathError if an output is wrong."""
    rig = Rig(study, modules, np.random.default_rng(0))
    constants = {captured.case: captured.constants for captured in study.captured}.get(case_id, {})
    stream = int(cuda(cudart.cudaStreamCreate()))
    for name in names:
        variant = study.variant(name)
        variant = replace(variant, constants={**variant.constants, **constants})
        case = next(case for case in variant.cases if case.id == case_id)
        bound = rig.bind(variant, case, stream)
        bound.poison_and_launch()
        if wrong := bound.check():
            raise HotpathError(f"{study.name}/{name}: wrong output: {wrong}")
        watch(name, bound.launch)


def main(kind: str, study_name: str, case_id: str, modules: str, out: str, *names: str) -> None:
    study = find_study(study_name)
    if kind == "counters":
        run(study, case_id, list(names), Path(modules), under_ncu)
    else:
        with timeline.recorder(Path(out)) as watch:
            run(study, case_id, list(names), Path(modules), watch)


if __name__ == "__main__":
    fail_in_one_line(lambda: main(*sys.argv[1:]))
