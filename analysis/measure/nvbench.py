"""Device times from NVBench: a fixed number of samples, no filtering, one state per cell."""

import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

from cuda import bench
from cuda.bench.results import BenchmarkResult

from analysis.base.files import remove
from analysis.measure.cell import Cell, Operation, TimeDevice

STATE_TIMEOUT_S: Final = 60.0
"""After this time, NVBench ends a cell with the samples it has. A cell takes much less than a
second."""
BLOCKING_TIMEOUT_S: Final = 5.0
"""After this time, NVBench reports an operation that cannot be enqueued without waiting as a
deadlock."""

Measure = Callable[[Cell, int, TimeDevice], None]
"""Checks and times one cell on a stream; the last argument takes device times of an operation."""


def run_under_nvbench(
    cells: list[Cell], measure: Measure, fail: Callable[[BaseException], NoReturn], out: Path
) -> None:
    """Measure `cells` in their order; NVBench's files are written next to `out`.

    NVBench runs once per process and returns its samples only when all cells are done. `fail` ends
    the process on an error, because NVBench itself would continue with the next cell.
    """

    def run_cell(state: Any) -> None:
        cell = cells[state.get_int64("cell")]
        stream = state.get_stream().addressof()
        is_timed = False

        def time_device(operation: Operation, count: int) -> None:
            nonlocal is_timed
            is_timed = True
            state.set_min_samples(count)
            state.set_blocking_kernel_timeout(BLOCKING_TIMEOUT_S)
            # An operation that waits would wait forever behind NVBench's blocking kernel.
            waits = cell.variant.host_work if operation.waits is None else operation.waits
            # The check has already warmed up a long operation, so NVBench's first call skips it.
            skips_warm_up = count == 1 and cell.case.samples != 1

            def reset_and_launch(_: Any, timer: Any) -> None:
                nonlocal skips_warm_up
                if operation.reset:
                    operation.reset(stream)
                timer.start()  # flushes the L2 and waits for the stream, then blocks it
                if not skips_warm_up:
                    operation.launch(stream)
                    if not waits:
                        # The copy engine checks only every few microseconds whether the work it
                        # waits for is done. A release in step with these checks would leave the
                        # same part of the wait in every sample.
                        spin(random.uniform(*operation.held_s))
                timer.stop()
                skips_warm_up = False

            state.exec(reset_and_launch, timer=True, sync=waits, batched=False)

        try:
            measure(cell, stream, time_device)
        except BaseException as error:  # NVBench would print any error and continue
            fail(error)
        if not is_timed:
            state.skip("no device time")

    benchmark = bench.register(run_cell).set_name("cells")
    benchmark.add_int64_axis("cell", range(len(cells)))
    benchmark.set_stopping_criterion("sample-count")
    benchmark.set_criterion_param_int64("target-samples", 1)
    # Throttling is recorded with the cell. Dropping such samples would hide it.
    benchmark.set_throttle_threshold(0.0)
    benchmark.set_timeout(STATE_TIMEOUT_S)
    json_file = out.with_suffix(".nvbench.json")
    for earlier in out.parent.glob(f"{json_file.name}*"):
        remove(earlier)
    bench.run_all_benchmarks(["hotpath", "--devices", "0", "--quiet", "--jsonbin", str(json_file)])
    add_device_times(cells, json_file)


def spin(seconds: float) -> None:
    """Wait without yielding the core."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def add_device_times(cells: list[Cell], json_file: Path) -> None:
    """Read the seconds of each sample, and the SM clock during the cell, back into the cells."""
    for state in BenchmarkResult.from_json(json_file).subbenches["cells"]:
        if state.is_skipped or state.samples is None:
            continue
        cell = cells[int(state.point["cell"])]
        cell.values += (("gpu_time", float(seconds)) for seconds in state.samples)
        frequencies = sorted(filter(math.isfinite, state.frequencies or ()))
        if frequencies:  # NaN is where NVBench counted no cycles
            cell.sm_mhz = round(frequencies[len(frequencies) // 2] / 1e6)
