"""Times the cells of a study by the engine and by the second clock, in the process of a round."""

from __future__ import annotations

import gc
import os
import statistics
import tempfile
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from analysis.base.gpu import Gpu, open_gpus, show_only
from analysis.measure.cell import Cell, TimeDevice
from analysis.measure.rig import Bound
from analysis.measure.round import Bench, RoundJob
from analysis.study import discover
from analysis.study.config import Grid, load_config
from analysis.toolchain.arch import resolve_arch
from analysis.toolchain.modules import built_modules
from tests.second_clock.cells import CELLS, TOLERANCE, Timed
from tests.second_clock.clock import SecondClock

SAMPLES = 60
"""Maximum samples of each clock."""

BUDGET_S = 0.5
"""Time limit of the samples of one clock and metric, in seconds."""


@dataclass(frozen=True)
class Compared:
    """Medians of both clocks in seconds; NaN if a cell failed."""

    timed: Timed
    metric: str
    engine_s: float
    second_s: float

    @property
    def ratio(self) -> float:
        """The engine's time over the second clock's."""
        return self.engine_s / self.second_s

    @property
    def agrees(self) -> bool:
        return abs(self.ratio - 1) <= TOLERANCE[self.metric]


class BothClocks(Bench):
    """The engine's visit to a cell, each within two of the second clock."""

    def __init__(self, job: RoundJob, gpus: tuple[Gpu, ...], library: Path) -> None:
        super().__init__(job, gpus, tell=lambda started: None)
        self._clock = SecondClock(library)
        self.second: dict[Cell, dict[str, list[float]]] = {}

    def _take_samples(
        self, cell: Cell, bound: Bound, first_launch_s: float, time_device: TimeDevice | None
    ) -> None:
        timed = next(each for each in CELLS if is_of(each, cell))
        count = self.sample_count(cell, first_launch_s)
        # Half of the samples on either side of the engine's, because hosts drift. The engine first
        # brings an allocator into its steady state.
        launched = [metric for metric in timed.metrics if metric != "op_time"]
        before = {metric: samples(self._clock_of(metric, bound), count) for metric in launched}
        super()._take_samples(cell, bound, first_launch_s, time_device)
        self.second[cell] = {
            metric: before.get(metric, []) + samples(self._clock_of(metric, bound), count)
            for metric in timed.metrics
        }

    def _clock_of(self, metric: str, bound: Bound) -> Callable[[], float]:
        """What takes one time of this metric by the second clock."""
        if metric == "gpu_time":
            return lambda: self._clock.device_time(bound)
        if metric == "host_time":
            return lambda: self._clock.host_time(bound)
        replay = vars(bound.operation)
        allocator, tape = replay["_allocator"], replay["_pattern"].tapes[0]
        return lambda: self._clock.allocator_time(allocator, tape)


def is_of(timed: Timed, cell: Cell) -> bool:
    return (timed.variant, timed.case) == (cell.variant.name, cell.case.id)


def samples(take: Callable[[], float], count: int) -> list[float]:
    """`count` times after two that are discarded."""
    return [take() for _ in range(2 + count)][2:]


def compare(study_name: str, library: Path) -> Iterable[Compared]:
    """Compare the clocks in all cells of a study. Once per process, like NVBench."""
    from analysis.measure.nvbench import run_under_nvbench

    config, study = load_config({}), discover()[study_name]
    timed = [each for each in CELLS if each.study == study_name]
    cells = [each.cell(study) for each in timed]
    with tempfile.TemporaryDirectory() as folder, open_gpus(config.gpus[:1]) as gpus:
        show_only(gpus)
        os.sched_setaffinity(0, gpus[0].local_cpus())
        job = RoundJob(
            study=study,
            variants=list({cell.variant.name: cell.variant for cell in cells}.values()),
            grid=Grid(name="full", rounds=1, samples=SAMPLES, sample_budget_s=BUDGET_S),
            run="second clock",
            number=0,
            modules=built_modules(resolve_arch(config.arch, config.gpus)),
            gpu_keys=tuple(gpu.key for gpu in gpus),
            out=Path(folder) / "round",
        )
        bench = BothClocks(job, tuple(gpus), library)
        gc.disable()
        run_under_nvbench(cells, bench.measure, fail, job.out)
    return [row for each in zip(timed, cells, strict=True) for row in rows(*each, bench.second)]


def rows(
    timed: Timed, cell: Cell, second: dict[Cell, dict[str, list[float]]]
) -> Iterable[Compared]:
    """The comparison of each metric of a cell. Prints why a cell was not timed."""
    if cell.failure or cell.skipped:
        print(f"{timed.study}/{cell}: {cell.failure or cell.skipped}")
    for metric in timed.metrics:
        engine = [value for name, value in cell.values if name == metric]
        yield Compared(timed, metric, median(engine), median(second.get(cell, {}).get(metric, [])))


def median(values: list[float]) -> float:
    return statistics.median(values) if values else float("nan")


def fail(error: BaseException) -> NoReturn:
    """End the process, because NVBench would continue with the next cell."""
    traceback.print_exception(error)
    os._exit(1)
