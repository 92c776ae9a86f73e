"""NVML telemetry while cells are measured, sampled by a thread of the process that supervises."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from threading import Event, Thread
from typing import Any, Final

from analysis.base.errors import HotpathError
from analysis.base.gpu import Gpu, GpuError
from analysis.base.records import parse_record
from analysis.measure.machine import utc_now
from analysis.measure.round import Visit
from analysis.results.store.records import Reading

PERIOD_S = 0.08
PCIE_EVERY: Final = 6
"""Number of periods between queries of PCIe throughput, about 2 Hz: one query takes 20 ms."""
END_S: Final = 5.0
"""Time for the thread to end; a GPU that no longer answers may hold it for ever."""

Answers = dict[str, Any]
"""Values of one GPU at one time, by column of `Reading`; the thread does not know the cell."""


@contextmanager
def recording(gpus: Sequence[Gpu]) -> Iterator[list[Answers]]:
    """A list that a thread fills with the answers of these open GPUs within the block."""
    answers: list[Answers] = []
    stop = Event()
    thread = Thread(target=record, args=(gpus, answers, stop), daemon=True)
    thread.start()
    try:
        yield answers
    finally:
        stop.set()
        thread.join(END_S)


def record(gpus: Sequence[Gpu], answers: list[Answers], stop: Event) -> None:
    """Append the answers of each GPU every PERIOD_S, until `stop` is set or a GPU is lost: then the
    round reports why it ended."""
    due = time.monotonic()
    with suppress(GpuError):
        for turn in count() if gpus else ():
            if stop.wait(max(0.0, due - time.monotonic())):
                return
            for place, gpu in enumerate(gpus):
                readings = gpu.readings(with_pcie=turn % PCIE_EVERY == 0)
                answers.append({"time": utc_now(), **readings, "gpu": place})
            due = max(due + PERIOD_S, time.monotonic())


def readings_of(
    answers: Iterable[Answers], visits: Sequence[Visit], number: int
) -> Iterator[Reading]:
    """The readings that fell into one of the `visits` of the round with this number. A visit lasts
    until the next one starts. Answers that no result may have are left out."""
    starts = [visit.started_at for visit in visits]
    for answer in answers:
        if place := bisect_right(starts, answer["time"]):
            visit = visits[place - 1]
            known = {"variant": visit.variant, "case": visit.case, "round": number, **answer}
            with suppress(HotpathError):
                texts = {name: "" if v is None else str(v) for name, v in known.items()}
                yield parse_record(Reading, texts)
