"""NVML telemetry while cells are measured, sampled by a thread of the process that supervises."""

from __future__ import annotations

import csv
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import Final

from analysis.base.errors import FieldError
from analysis.base.gpu import Gpu, GpuError
from analysis.base.records import cells, parse_record
from analysis.measure.journal import RoundRecord
from analysis.measure.machine import utc_now
from analysis.results.disturbance import reasons
from analysis.results.store.records import READING_COLUMNS, Reading
from analysis.results.store.samples import Row

PERIOD_S = 0.08
PCIE_EVERY: Final = 6
"""Number of periods between queries of PCIe throughput, about 2 Hz: one query takes 20 ms."""
END_S: Final = 5.0
"""Time for the thread to end; a GPU that no longer answers may hold it for ever."""
COLUMNS: Final = READING_COLUMNS[READING_COLUMNS.index("time") :]
"""Columns of the thread's file, which does not know the cells."""


@contextmanager
def recording(gpus: Sequence[Gpu], out: Path) -> Iterator[None]:
    """Append telemetry of these open GPUs to `out` meanwhile."""
    stop = Event()
    thread = Thread(target=record, args=(gpus, out, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(END_S)


def record(gpus: Sequence[Gpu], out: Path, stop: Event) -> None:
    """Append a row of COLUMNS for each GPU to `out` every PERIOD_S until `stop` is set, or until a
    GPU no longer answers: then the round reports why it ended. What a GPU does not report is an
    empty cell."""
    due = time.monotonic()
    with suppress(GpuError), out.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for turn in count():
            if stop.wait(max(0.0, due - time.monotonic())):
                return
            for place, gpu in enumerate(gpus):
                readings = gpu.readings(with_pcie=turn % PCIE_EVERY == 0)
                writer.writerow([utc_now(), *(readings[name] for name in COLUMNS[1:-1]), place])
            file.flush()
            due = max(due + PERIOD_S, time.monotonic())


def read_telemetry(path: Path, records: Iterable[RoundRecord]) -> tuple[list[Reading], int]:
    """The readings in a file by `record` that fell into a visit to a cell of these rounds, and the
    number of damaged lines, as a crash may leave them.

    A visit lasts until the next one starts, the last of a round until its end.
    """
    marks = [("", "", "", "0")]
    for each in records:
        marks += [(v.started_at, v.variant, v.case, f"{each.round}") for v in each.visits]
        marks.append((each.end, "", "", "0"))
    marks.sort()
    starts = [start for start, *_ in marks]
    found, damaged = list[Reading](), 0
    text = path.read_text(errors="replace") if path.exists() else ""
    for line in text.splitlines():
        fields = line.split(",")
        _, *cell = marks[bisect_right(starts, fields[0]) - 1]
        try:
            found.append(parse_record(Reading, cells(Reading, [*cell, *fields])))
        except (ValueError, FieldError):
            damaged += 1
    return [reading for reading in found if reading.variant], damaged


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
        of_cell = seen[row.key]
        found = reasons([row.throttle, *(reading.throttle for reading in of_cell)])
        clocks = [one.sm_mhz for one in of_cell if one.gpu == 0 and one.sm_mhz is not None]
        is_counted = any(metric == "gpu_time" for metric, _ in row.values)
        mhz = median(clocks) if clocks and not is_counted else row.sm_mhz
        yield replace(row, throttle="|".join(sorted(found)), sm_mhz=mhz)
