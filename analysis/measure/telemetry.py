"""NVML telemetry while cells are measured, sampled by a separate process."""

from __future__ import annotations

import csv
import multiprocessing
import signal
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from analysis.base.errors import FieldError
from analysis.base.gpu import GpuError, open_gpus
from analysis.base.processes import end_with_parent, killed
from analysis.base.records import cells, parse_record
from analysis.measure.journal import RoundRecord
from analysis.measure.machine import utc_now
from analysis.results.disturbance import reasons
from analysis.results.store.records import READING_COLUMNS, Reading
from analysis.results.store.samples import Row

PERIOD_S = 0.08
PCIE_EVERY = 6
"""Number of periods between queries of PCIe throughput, about 2 Hz: one query takes 20 ms."""

END_S = 5.0
"""Time for the process to end; it then waits for a GPU that no longer answers."""

COLUMNS = READING_COLUMNS[READING_COLUMNS.index("time") :]
"""Columns of the process's file, which does not know the cells."""


@contextmanager
def recording(gpu_keys: Sequence[int | str], out: Path) -> Iterator[None]:
    """Append telemetry of these GPUs to `out` meanwhile, in another process."""
    context = multiprocessing.get_context("forkserver")
    stop, stopping = context.Pipe(duplex=False)
    process = context.Process(target=record, args=(gpu_keys, out, stop), daemon=True)
    process.start()
    stop.close()
    try:
        yield
    finally:
        stopping.close()
        process.join(END_S)
        if process.is_alive():
            killed(process)


def record(gpu_keys: Sequence[int | str], out: Path, stop: Connection) -> None:
    """Append a row of COLUMNS for each GPU to `out` every PERIOD_S until the other end of `stop` is
    closed, or until a GPU no longer answers: then the round reports why it ended. What a GPU does
    not report is an empty cell.

    Not an Event of multiprocessing: to set one never returns if a process was killed that waited
    for it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    with suppress(GpuError), open_gpus(gpu_keys) as gpus, out.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        turn = 0
        due = time.monotonic()
        while not stop.poll(max(0.0, due - time.monotonic())):
            for place, gpu in enumerate(gpus):
                readings = gpu.readings(with_pcie=turn % PCIE_EVERY == 0)
                writer.writerow([utc_now(), *(readings[name] for name in COLUMNS[1:-1]), place])
            file.flush()
            turn += 1
            due = max(due + PERIOD_S, time.monotonic())


def read_telemetry(path: Path, records: Sequence[RoundRecord]) -> list[Reading]:
    """The readings in a file by `record` that fell into a visit to a cell of these rounds.

    A visit lasts until the next one starts, the last of a round until its end. Damaged lines, as a
    crash may leave them, are left out and counted in a line of output.
    """
    marks = sorted(
        mark
        for one in records
        for mark in (
            *((visit.started_at, visit.variant, visit.case, one.round) for visit in one.visits),
            (one.end, "", "", one.round),
        )
    )
    starts = [start for start, *_ in marks]
    found: list[Reading] = []
    damaged = 0
    for line in path.read_bytes().decode(errors="replace").splitlines():
        fields = line.split(",")
        at = bisect_right(starts, fields[0]) - 1
        _, variant, case, number = marks[at] if at >= 0 else ("", "", "", 0)
        if not variant:
            continue
        try:
            row = cells(Reading, [variant, case, str(number), *fields])
            found.append(parse_record(Reading, row))
        except (ValueError, FieldError):
            damaged += 1
    if damaged:
        print(f"{path}: {damaged} damaged rows are left out", flush=True)
    return found


def with_clocks(rows: Iterable[Row], readings: Iterable[Reading]) -> Iterator[Row]:
    """`rows` of samples with the clock of the first GPU that was seen while their cell was
    measured, the median, and with every reason for lowered ones of any, even if it came and went.

    A cell without readings keeps the clock it has, and so does one with device times, as NVBench
    counts the clock in every one of them.
    """
    seen: defaultdict[tuple[str, str, int], list[Reading]] = defaultdict(list)
    for reading in readings:
        seen[reading.variant, reading.case, reading.round].append(reading)
    for row in rows:
        found = reasons([row.throttle, *(reading.throttle for reading in seen[row.key])])
        counted = any(metric == "gpu_time" for metric, _ in row.values)
        clocks = [
            reading.sm_mhz
            for reading in seen[row.key]
            if reading.gpu == 0 and reading.sm_mhz is not None and not counted
        ]
        mhz = median(clocks) if clocks else row.sm_mhz
        yield replace(row, throttle="|".join(sorted(found)), sm_mhz=mhz)
