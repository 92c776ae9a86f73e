"""One process in which every variant of a study runs its case once, under a profiler.

    python -m analysis.measure.profile.session counters|timeline STUDY CASE MODULES OUT VARIANT...

Each output is checked before the profiled launch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from cuda.bindings import runtime as cudart

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.measure.memory import cuda
from analysis.measure.profile.timeline import Watch, recorder
from analysis.measure.rig import Rig
from analysis.study import find_study


@contextmanager
def under_ncu() -> Iterator[Watch]:
    """Yield a function that launches under Nsight Compute, which starts with profiling off and
    prefixes kernel names with the NVTX range."""
    import nvtx

    def watch(variant: str, launch: Callable[[], None]) -> None:
        with nvtx.annotate(variant):
            cuda(cudart.cudaProfilerStart())
            launch()
            cuda(cudart.cudaProfilerStop())

    yield watch


def main(kind: str, study_name: str, case_id: str, modules: str, out: str, *names: str) -> None:
    """Set up, check and profile each of `names` in turn; HotpathError if an output is wrong."""
    study = find_study(study_name)
    constants = {captured.case: captured.constants for captured in study.captured}.get(case_id, {})
    with under_ncu() if kind == "counters" else recorder(Path(out)) as watch:
        rig = Rig(study, Path(modules), np.random.default_rng(0))
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


if __name__ == "__main__":
    fail_in_one_line(lambda: main(*sys.argv[1:]))
