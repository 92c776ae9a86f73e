"""Device times by NVBench: a fixed number of samples, no filter of its own, one state a cell."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Protocol

from cuda import bench
from cuda.bench.results import BenchmarkResult

from analysis.measure.cell import Cell, Operation, TimeDevice

STATE_TIMEOUT_S = 60.0
"""After this NVBench ends a cell with the samples it has; a cell takes well under a second."""

STILL_HELD_S = 50e-6
"""A stream stays held up to so long once all is enqueued, at random. The copy engine looks only
every few microseconds whether what it waits for is done; were streams released in step with that,
all samples would hold the same part of such a wait, by how fast the CPU happens to be."""

BLOCKING_TIMEOUT_S = 5.0
"""After this NVBench calls an operation that cannot be enqueued without waiting a deadlock."""


class Measure(Protocol):
    """Checks and times one cell, taking device times of an operation by `time_device`."""

    def __call__(self, cell: Cell, stream: int, time_device: TimeDevice, /) -> None: ...


def run_under_nvbench(
    cells: list[Cell], measure: Measure, fail: Callable[[BaseException], NoReturn], out: Path
) -> None:
    """Measure `cells` in their order; NVBench's own files go beside `out`.

    NVBench runs once a process, and gives its samples only when all cells are done. `fail` ends
    the process on an error, because NVBench itself would go on with the next cell.
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
            # Held back by NVBench's blocking kernel, one that waits would wait forever.
            waits = cell.variant.host_work if operation.waits is None else operation.waits
            reset = operation.reset
            takes_long = count == 1 and cell.case.samples != 1
            if reset is None and not takes_long:

                def launch(_: Any) -> None:
                    operation.launch(stream)
                    if not waits:
                        spin(random.uniform(0, STILL_HELD_S))

                state.exec(launch, sync=waits, batched=False)
                return
            # What takes long was warmed by its check: NVBench's own first call does nothing then.
            is_warm_up = takes_long

            def reset_and_launch(_: Any, timer: Any) -> None:
                nonlocal is_warm_up
                if reset:
                    reset(stream)
                timer.start()
                if not is_warm_up:
                    operation.launch(stream)
                timer.stop()
                is_warm_up = False

            sync = waits or reset is not None
            state.exec(reset_and_launch, timer=True, sync=sync, batched=False)

        try:
            measure(cell, stream, time_device)
        except BaseException as error:  # whatever it is, NVBench would only print it and go on
            fail(error)
        if not is_timed:
            state.skip("no device time")

    benchmark = bench.register(run_cell).set_name("cells")
    benchmark.add_int64_axis("cell", range(len(cells)))
    benchmark.set_stopping_criterion("sample-count")
    benchmark.set_criterion_param_int64("target-samples", 1)
    # Throttling is recorded with the cell; dropping such samples would hide it.
    benchmark.set_throttle_threshold(0.0)
    benchmark.set_timeout(STATE_TIMEOUT_S)
    json_file = out.with_suffix(".nvbench.json")
    bench.run_all_benchmarks(["hotpath", "--devices", "0", "--quiet", "--jsonbin", str(json_file)])
    add_device_times(cells, json_file)


def spin(seconds: float) -> None:
    """Let time pass without giving up the core."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def add_device_times(cells: list[Cell], json_file: Path) -> None:
    """Read the seconds of each sample, and the SM clock meanwhile, back into their cells."""
    for state in BenchmarkResult.from_json(json_file).subbenches["cells"]:
        if state.is_skipped or state.samples is None:
            continue
        cell = cells[int(state.point["cell"])]
        cell.values += (("gpu_time", float(seconds)) for seconds in state.samples)
        if state.frequencies:
            cell.sm_mhz = round(sorted(state.frequencies)[len(state.frequencies) // 2] / 1e6)
