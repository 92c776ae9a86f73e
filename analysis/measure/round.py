"""One round: a separate process that checks and then times every cell, in random order."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import time
import traceback
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NoReturn

import numpy as np

from analysis.base.errors import FieldError, HotpathError, os_error_message, require_known
from analysis.base.gpu import Gpu, open_gpus, show_only
from analysis.base.processes import end_with_parent
from analysis.measure.cell import Cell, PythonLauncher, Skip, TimeDevice
from analysis.measure.cpu import use_cpus
from analysis.measure.machine import utc_now
from analysis.measure.rig import Bound, Rig
from analysis.results.disturbance import reasons
from analysis.results.store import MIN_UNWARMED_S
from analysis.results.store.keys import Stages, without_private
from analysis.results.store.samples import Metric, Row, to_text
from analysis.study import Study, Variant
from analysis.study.config import Grid
from analysis.study.description import HOST_TIMES

WARM_UP_S = 0.3
"""Maximum seconds of work before the first cell: an idle GPU may need this long to raise its
clocks; a CPU needs less."""
HIGHEST_CLOCK_S = 0.1
"""Seconds of work at the GPU's highest clock after which the warm-up ends early."""
WARM_UP_LAUNCHES: Final = 2
"""Number of discarded launches of a short operation after its check. A check leaves the allocators
and caches of the host in another state: the first calls after it may take twice as long."""
DISCARDED_HOST_PASSES: Final = 1
"""Number of host times that are discarded at the start of a cell: below 0.1 ms, the first one is
several per cent slower than the next. Recorded in the run's file."""


@dataclass(frozen=True)
class Visit:
    """When a visit to a cell began; it lasts until the next visit of the round."""

    started_at: str
    variant: str
    case: str


@dataclass(frozen=True)
class RoundJob:
    """Input of a round's process, passed by pickle. `variants` can run here. NVBench writes
    next to `out`. `faults` are the reasons why cells have failed that stopped this round before, by
    variant and case; `started_s` is the time of the monotonic clock when the process starts."""

    study: Study
    variants: Sequence[Variant]
    grid: Grid
    run: str
    number: int
    modules: Path
    gpu_keys: Sequence[int | str]
    out: Path
    faults: Mapping[tuple[str, str], str] = field(default_factory=dict)
    started_s: float = field(default_factory=time.monotonic)


def run_round(job: RoundJob, parent: Connection, limit_s: float) -> None:
    """Measure one round. Sends every Visit, then the samples as the text of a CSV file, and the
    Stages; or the text of the error that ends the process. After `limit_s`, it writes the stacks of
    its threads to the standard error."""
    # The parent also gets them, and ends this process.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    end_with_parent()
    standard_error = 2
    faulthandler.enable(standard_error)
    faulthandler.dump_traceback_later(limit_s, file=standard_error)

    def fail(error: BaseException) -> NoReturn:
        """End the process immediately: after a failed kernel, no further GPU call is reliable, not
        even in destructors."""
        message = os_error_message(error) if isinstance(error, OSError) else None
        if message is None and not isinstance(error, HotpathError):
            traceback.print_exception(error)
        parent.send(message or f"{error}" or repr(error))
        os._exit(os.EX_IOERR if message else 1)  # as after a full disk, nothing more can be kept

    try:
        with ExitStack() as stack:
            gpus: tuple[Gpu, ...] = ()
            if job.gpu_keys:
                gpus = stack.enter_context(open_gpus(job.gpu_keys))
                show_only(gpus)
            use_cpus(gpus[0].local_cpus() if gpus else os.sched_getaffinity(0))
            bench = Bench(job, gpus, parent.send)
            cells = bench.schedule()
            gc.disable()
            if gpus and cells:  # NVBench cannot read an empty list of cells back
                from analysis.measure.nvbench import run_under_nvbench

                run_under_nvbench(cells, bench.measure, fail, job.out)
            else:
                for cell in cells:
                    bench.measure(cell)
            parent.send((to_text(bench.rows(cells)), bench.stages(cells)))
    except BaseException as error:  # any error ends the round, and the parent reports it
        fail(error)


class Bench:
    """Checks and times cells of one study in this process; `tell` hears of every visit."""

    def __init__(self, job: RoundJob, gpus: Sequence[Gpu], tell: Callable[[Visit], object]) -> None:
        self.job, self.study, self.gpus, self._tell = job, job.study, gpus, tell
        self._rng = np.random.default_rng([zlib.crc32(job.run.encode()), job.number])
        self.rig = Rig(self.study, job.modules, self._rng, job.variants)
        self._is_warm = False
        self._stage_s: defaultdict[str, float] = defaultdict(float)

    def schedule(self) -> list[Cell]:
        """Cells case by case, with the cases, and the variants within each case, in random order. A
        case with several visits is repeated that often in a row, in a new order each time."""
        cells: defaultdict[str, list[Cell]] = defaultdict(list)
        for variant in self.job.variants:
            for case in variant.in_grid(self.job.grid.name):
                if self.job.number % case.every == 0:
                    fault = self.job.faults.get((variant.name, case.id), "")
                    cells[case.id].append(Cell(variant, case, failure=fault))
        order = []
        for case_id in self._rng.permutation(list(cells)):
            group = cells[str(case_id)]
            for _ in range(group[0].case.visits):
                order += [group[i] for i in self._rng.permutation(len(group))]
        return order

    def measure(self, cell: Cell, stream: int = 0, time_device: TimeDevice | None = None) -> None:
        """Check the cell's output, then time it; a wrong output makes it a failed cell.

        `time_device` takes the given number of device times of an operation; it is None without a
        GPU. A cell that failed or was skipped on an earlier visit is not measured again.
        """
        self._stage_s.setdefault("start", time.monotonic() - self.job.started_s)
        started_at = utc_now()
        cell.started_at = cell.started_at or started_at
        if cell.failure or cell.skipped:
            return
        self._tell(Visit(started_at, cell.variant.name, cell.case.id))
        try:
            with self._stage("prepare"):
                bound = self.rig.bind(cell.variant, cell.case, stream)
                if not self._is_warm:
                    self._warm_up(bound)
            with self._stage("check"):
                first_launch_s = bound.poison_and_launch()
                self._read_clocks(cell)
                cell.failure = bound.check()
            if not cell.failure:
                with self._stage("timing"):
                    self._take_samples(cell, bound, first_launch_s, time_device)
                self._read_clocks(cell)
        except Skip as reason:
            cell.skipped = str(reason)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._stage_s[name] += time.perf_counter() - start

    def stages(self, cells: Sequence[Cell]) -> Stages:
        """The seconds of each stage of this round, whose cells have all their values."""
        values = [value for cell in dict.fromkeys(cells) for value in cell.values]
        timed_s = sum(seconds for name, seconds in values if name in ("gpu_time", "host_time"))
        stage_s = self._stage_s | {"recorded": self._stage_s["workload"] + timed_s}
        return Stages(**{name: stage_s.get(name, 0.0) for name in Stages.model_fields})

    def _read_clocks(self, cell: Cell) -> None:
        """Record the first GPU's clock and all GPUs' throttle reasons, between two timings."""
        cell.reasons |= reasons(gpu.throttle_reasons() or "" for gpu in self.gpus)
        if self.gpus and (mhz := self.gpus[0].sm_clock_mhz()) is not None:
            cell.clocks_mhz.append(mhz)
            cell.sm_mhz = float(np.median(cell.clocks_mhz))

    def _take_samples(
        self, cell: Cell, bound: Bound, first_launch_s: float, time_device: TimeDevice | None
    ) -> None:
        """Take all metrics of a cell whose output is correct. A call right after the check is no
        sample."""
        count = self.sample_count(cell, first_launch_s)
        needs_warm_up = first_launch_s < MIN_UNWARMED_S
        for _ in range(WARM_UP_LAUNCHES if needs_warm_up else 0):
            bound.warm_up()
        with self._stage("workload"):
            by_name = bound.operation.own_samples(bound.stream, count)
        for name, values in by_name.items():
            require_known("own_samples", name, self.study.metrics)
            cell.values += ((name, float(value)) for value in values)
        metrics = self.study.metrics if cell.case.metrics is None else cell.case.metrics
        by_host = [name for name in HOST_TIMES if name in metrics]
        if time_device and cell.variant.on_gpu and "gpu_time" in metrics:
            time_device(bound.operation, count)
            self._read_clocks(cell)
        if by_host:
            clock = "python" if isinstance(bound.operation.launcher, PythonLauncher) else "cpp"
            if clock != cell.variant.clock:
                field = f"variant {cell.variant.name}: clock"
                raise FieldError(field, f"{clock}, the clock of its launcher", cell.variant.clock)
            discarded = 0
            if needs_warm_up:  # the first launch is slow, especially right after device times
                bound.launch()
                discarded = DISCARDED_HOST_PASSES
            times = bound.host_times(discarded + count, warm=cell.case.warm)
            for taken in islice(times, discarded, None):
                cell.values += ((name, taken[name]) for name in by_host)

    def sample_count(self, cell: Cell, launch_s: float) -> int:
        """Number of samples of a cell whose launch takes this long, at least one."""
        affordable = max(1, int(self.job.grid.sample_budget_s / max(launch_s, 1e-9)))
        return min(self.job.grid.samples, affordable, cell.case.samples or affordable)

    def _warm_up(self, bound: Bound) -> None:
        """Launch until the first GPU has been at its highest clock for HIGHEST_CLOCK_S, for at most
        WARM_UP_S; without a GPU, for HIGHEST_CLOCK_S."""
        start = last_below = time.perf_counter()
        while (now := time.perf_counter()) < start + WARM_UP_S:
            if self.gpus and not self.gpus[0].is_at_highest_clock():
                last_below = now
            elif now > last_below + HIGHEST_CLOCK_S:
                break
            bound.launch()
        self._is_warm = True

    def rows(self, cells: Sequence[Cell]) -> Iterator[Row]:
        """The rows of the round. A failed or skipped cell has a reason, and none of the samples of
        its earlier visits."""
        for cell in dict.fromkeys(cells):
            reason = cell.skipped or cell.failure
            values: dict[Metric, list[float]] = {}
            for metric, value in () if reason else cell.values:
                values.setdefault((metric, self.study.metrics[metric].unit), []).append(value)
            yield Row(
                variant=cell.variant.name,
                case=cell.case.id,
                round=self.job.number,
                values=values,
                verified=int(not reason),
                status="skipped" if cell.skipped else "failed" if cell.failure else "ok",
                reason=without_private(reason),
                throttle="|".join(sorted(cell.reasons)),
                sm_mhz=cell.sm_mhz,
                started_at=cell.started_at,
            )
