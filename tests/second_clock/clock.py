"""The cells that both clocks time, and the engine's visit to one within two of the second clock.

The engine's clocks are NVBench for device times and kernels/common/host_clock.h for host times. The
second clock, a plain C++ and CUDA program, shares no code with them. Both time the same built
modules, bound by the same workload, in one visit of one process.
"""

import ctypes
import gc
import math
import os
import statistics
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from analysis.base.expression import evaluate
from analysis.base.gpu import Gpu, open_gpus, show_only
from analysis.measure.cell import Cell, TimeDevice
from analysis.measure.rig import Bound
from analysis.measure.round import Bench, RoundJob
from analysis.study import Case, Study, discover, parse_case
from analysis.study.config import Grid, load_config
from analysis.toolchain.compilers import Toolchain, output_of, resolve_arch
from analysis.toolchain.modules import built_modules

ADDRESS = ctypes.c_void_p
TIMES = {"gpu_time": "device_time", "host_time": "host_time"}
"""Functions of the second clock by metric."""
TOLERANCE: Final = {"gpu_time": 0.03, "host_time": 0.05}
"""Largest difference between the medians of the two clocks, as a share, by metric."""


@dataclass(frozen=True)
class Timed:
    """A variant and case, which need not be in study.yaml, and the metrics to compare."""

    study: str
    variant: str
    case: str
    metrics: tuple[str, ...] = ("gpu_time", "host_time")

    def cell(self, study: Study) -> Cell:
        """The engine's cell of this variant and case."""
        variant, values = study.variant(self.variant), parse_case(self.case)
        payload = evaluate(variant.payload, {**variant.constants, **values})
        return Cell(variant, Case(values, payload, "full"))


_GATHER = "bs=128,topk=2048,draw=with_replacement"
_FEW = "bs=1,topk=512,draw=with_replacement"
_HOT_SET = "requests=1,topk=2048,slots=4096,misses={misses},pool_mib=188,layout=scattered"

CELLS: Final = (
    Timed("method", "empty_kernel", "bytes=0"),
    # Its reset rests for milliseconds, after which host times of one process differ by a fifth.
    Timed("method", "copy_written_here", "bytes=98304", ("gpu_time",)),
    Timed("h2d_gather", "v4_grid_stride", _GATHER),
    Timed("h2d_gather", "ceiling_sm_copy", _GATHER),
    # Behind a held stream, a copy engine polls, so that device times of short copies vary.
    Timed("h2d_gather", "ceiling_copy_engine", _FEW, ("host_time",)),
    Timed("h2d_gather", "batch_memcpy", _FEW, ("host_time",)),
    Timed("unpack", "descriptors_in_place", "chunks=8,kib=512,fragment=4096,src=0,dst=0"),
    Timed("hot_set", "v5_several_blocks", _HOT_SET.format(misses=16)),
    Timed("hot_set", "v5_several_blocks", _HOT_SET.format(misses=410)),
    Timed("pool_gather", "loads_first", "rows=2048,pool_mib=40960,layout=scattered"),
)


def build(toolchain: Toolchain, arch: str, folder: Path) -> Path:
    """Compile the second clock into a shared library in `folder`. HotpathError if that fails."""
    source, out = Path(__file__).parent / "second_clock.cu", folder / "second_clock.so"
    libraries = [f"-L{path}" for path in toolchain.libraries]
    options = ["-std=c++17", "-O2", f"-arch={arch}", "-shared", "-Xcompiler=-fPIC"]
    output_of([str(toolchain.nvcc), *options, str(source), *libraries, "-o", str(out)])
    return out


class BothClocks(Bench):
    """The engine's visit to a cell, each within two of the second clock."""

    def __init__(self, job: RoundJob, gpus: tuple[Gpu, ...], library: Path) -> None:
        super().__init__(job, gpus, tell=lambda started: None)
        self._clock = ctypes.CDLL(str(library))  # releases the GIL during calls
        for name in TIMES.values():
            getattr(self._clock, name).restype = ctypes.c_double
        self.second: dict[Cell, dict[str, list[float]]] = {}

    def _take_samples(
        self, cell: Cell, bound: Bound, first_launch_s: float, time_device: TimeDevice | None
    ) -> None:
        case = cell.variant.name, cell.case.id
        metrics = next(one.metrics for one in CELLS if (one.variant, one.case) == case)
        count = self.sample_count(cell, first_launch_s)

        def samples(metric: str) -> list[float]:
            """`count` times after two that are discarded."""
            return [self._time(metric, bound) for _ in range(2 + count)][2:]

        # Half of the samples on either side of the engine's, because hosts drift.
        before = {metric: samples(metric) for metric in metrics}
        super()._take_samples(cell, bound, first_launch_s, time_device)
        self.second[cell] = {metric: before[metric] + samples(metric) for metric in metrics}

    def _time(self, metric: str, bound: Bound) -> float:
        """Seconds of one launch after its reset by the second clock: between events around it in a
        held stream, or of it and its wait, while what the CPU reads is in no cache."""
        operation: Any = bound.operation
        if operation.reset:
            operation.reset(bound.stream)
            bound.wait()
        if metric == "host_time":
            self._clock.flush(ADDRESS(bound.stream))
            if bound.variant.host_work and operation.settle:
                operation.settle()
        # Of the C function that does the work once, of its argument, and of the stream.
        addresses = map(ADDRESS, (*operation.launcher.addresses, bound.stream))
        return float(getattr(self._clock, TIMES[metric])(*addresses))

    def compared(self, timed: Timed, cell: Cell) -> list[dict[str, object]]:
        """A row for each metric of a cell: the medians of both clocks in seconds, NaN if it failed,
        and whether they agree. Prints why a cell was not timed."""
        if cell.failure or cell.skipped:
            print(f"{timed.study}/{cell}: {cell.failure or cell.skipped}")
        rows: list[dict[str, object]] = []
        for name in timed.metrics:
            second = statistics.median(self.second.get(cell, {}).get(name, [math.nan]))
            samples = [value for key, value in cell.values if key == name] or [math.nan]
            engine = statistics.median(samples)
            row = {"cell": f"{timed.study}/{cell}", "metric": name, "engine": engine}
            agrees = abs(engine / second - 1) <= TOLERANCE[name]
            rows.append({**row, "second clock": second, "agrees": agrees})
        return rows


def compare(study_name: str, library: Path) -> list[dict[str, object]]:
    """Compare the clocks in all cells of a study. Once per process, like NVBench."""
    from analysis.measure.nvbench import run_under_nvbench

    config, study = load_config({}), discover()[study_name]
    cells = {one: one.cell(study) for one in CELLS if one.study == study_name}
    with tempfile.TemporaryDirectory() as folder, open_gpus(config.gpus[:1]) as gpus:
        show_only(gpus)
        os.sched_setaffinity(0, gpus[0].local_cpus())
        job = RoundJob(
            study=study,
            variants=list({cell.variant.name: cell.variant for cell in cells.values()}.values()),
            grid=Grid(name="full", rounds=1, samples=60, sample_budget_s=0.5),
            run="second clock",
            number=0,
            modules=built_modules(resolve_arch(config.arch, config.gpus)),
            gpu_keys=tuple(gpu.key for gpu in gpus),
            out=Path(folder) / "round",
        )
        bench = BothClocks(job, tuple(gpus), library)
        gc.disable()
        run_under_nvbench([*cells.values()], bench.measure, fail, job.out)
    return [row for timed, cell in cells.items() for row in bench.compared(timed, cell)]


def fail(error: BaseException) -> NoReturn:
    """End the process, because NVBench would continue with the next cell."""
    traceback.print_exception(error)
    os._exit(1)
