"""NVML telemetry while cells are measured, sampled by a separate process."""

from __future__ import annotations

import csv
import signal
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from analysis.base.errors import FieldError
from analysis.base.gpu import Gpu, GpuError, open_gpus
from analysis.base.processes import end_with_parent
from analysis.base.records import cells, parse_record, to_text
from analysis.measure.cell import Visit
from analysis.measure.clock import utc_now
from analysis.results.disturbance import reasons
from analysis.results.store.records import READING_COLUMNS, Reading
from analysis.results.store.samples import Row

PERIOD_S = 0.08
PCIE_EVERY = 6
"""Number of periods between queries of PCIe throughput, about 2 Hz: one query takes 20 ms."""

CELL_COLUMNS = ("variant", "case", "round")
COLUMNS = READING_COLUMNS[len(CELL_COLUMNS) :]


def record(gpu_keys: Sequence[int | str], out: Path, stop: Connection) -> None:
    """Append a row of COLUMNS for each GPU to `out` every PERIOD_S until the other end of `stop` is
    closed, or until a GPU no longer answers: then the round reports why it ended. What a GPU does
    not report is an empty cell.

    Not an Event of multiprocessing: to set one never returns if a process was killed that waited
    for it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    with (
        suppress(GpuError),
        open_gpus(gpu_keys) as gpus,
        out.open("a", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        turn = 0
        due = time.monotonic()
        while not stop.poll(max(0.0, due - time.monotonic())):
            with_pcie = turn % PCIE_EVERY == 0
            writer.writerows([*_row(gpu, with_pcie), place] for place, gpu in enumerate(gpus))
            file.flush()
            turn += 1
            due = max(due + PERIOD_S, time.monotonic())


def _row(gpu: Gpu, with_pcie: bool) -> list[Any]:
    readings = gpu.readings(with_pcie)
    return [utc_now(), *(readings[column] for column in COLUMNS[1:-1])]


def whole_rows(path: Path) -> tuple[list[list[str]], int]:
    """The rows that `record` has written to `path`, and the number of damaged ones: a crash may cut
    one off."""
    lines = path.read_bytes().decode(errors="replace").split("\n")
    rows = [line.split(",") for line in lines if line]
    whole = [row for row in rows if _is_whole(row)]
    return whole, len(rows) - len(whole)


def _is_whole(row: Sequence[str]) -> bool:
    with suppress(ValueError, FieldError):
        return bool(parse_record(Reading, cells(Reading, ["", "", "0", *row])))
    return False


def by_variant(
    rows: Sequence[Sequence[str]], visits: Iterable[Visit], ends: Sequence[str]
) -> dict[str, list[list[str]]]:
    """Telemetry rows by the variant whose cell they fall into, with CELL_COLUMNS prepended.

    A visit to a cell lasts until the next one starts. The last one of a round lasts until that
    round's time in `ends`.
    """
    cells = [(v.started_at, v.variant, v.case, str(v.round)) for v in visits]
    marks = sorted([*cells, *((end, "", "", "") for end in ends)])
    starts = [mark[0] for mark in marks]
    found: dict[str, list[list[str]]] = {}
    for row in rows:
        at = bisect_right(starts, row[0]) - 1
        if at >= 0 and marks[at][1]:
            found.setdefault(marks[at][1], []).append([*marks[at][1:], *row])
    return found


def with_clocks(
    rows: Iterable[Row], telemetry: Mapping[str, Sequence[Sequence[str]]]
) -> Iterator[Row]:
    """`rows` of samples with the clock of the first GPU that was seen while their cell was
    measured, the median, and with every reason for lowered ones of any, even if it came and went.

    `telemetry` is as `by_variant` gives it. A cell that it missed keeps the clock it has, and so
    does one with device times, as NVBench counts the clock in every one of them.
    """
    names = [*CELL_COLUMNS, *COLUMNS]
    throttle, clock, gpu = map(names.index, ("throttle", "sm_mhz", "gpu"))
    seen: dict[tuple[str, ...], list[Sequence[str]]] = {}
    for row in chain.from_iterable(telemetry.values()):
        seen.setdefault(tuple(row[: len(CELL_COLUMNS)]), []).append(row)
    for sampled in rows:
        readings = seen.get((*sampled.cell, str(sampled.round)), [])
        found = reasons([sampled.throttle, *(reading[throttle] for reading in readings)])
        counted = any(metric == "gpu_time" for metric, _ in sampled.values)
        clocks = [float(r[clock]) for r in readings if r[gpu] == "0" and r[clock] and not counted]
        mhz = median(clocks) if clocks else sampled.sm_mhz
        yield replace(sampled, throttle="|".join(sorted(found)), sm_mhz=mhz)


def telemetry_text(telemetry: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """The file of all rows."""
    return to_text((*CELL_COLUMNS, *COLUMNS), chain.from_iterable(telemetry.values()))
