"""The model: the time of an operation is its start-up and the largest of what it must wait for.

| term | seconds |
|---|---|
| link | bytes on the wire, and what half lines cost beside them / effective rate of the link |
| request rate | requests / what the chip sends at most in a second |
| SM request rate | requests of one multiprocessor / what it sends at most in a second |
| in flight | turns of its warps * time of a turn (Little's law) |
| start-up | fixed, and the latency of device memory where it holds what is to be read |
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.model.access import Access
from analysis.model.traffic import traffic_of

Floats = npt.NDArray[np.float64]

TERMS: Final = ("link", "request rate", "SM request rate", "in flight", "start-up")
"""Columns of `term_seconds`. The time is the largest but the last, and the last."""

WORK: Final = (
    *("wire", "half lines", "requests", "requests of an SM", "turns"),
    *("indexed", "copy engine"),
)
"""Columns of the model's input, `work_of`."""

WARPS_PER_SM: Final = 64
"""Warps resident on a multiprocessor at most (CUDA C++ Programming Guide, compute capabilities 8.0,
9.0 and 10.0). A grid that large is bound by the link long before, so that registers and chips with
48 are left out."""
WARPS_PER_BLOCK: Final = 8
"""Every kernel with a `link` launches blocks of 256 threads; a block is on a multiprocessor of its
own while there are enough of them."""


@dataclass(frozen=True)
class Parameters:
    """What a machine's link and chip can do; NaN where no calibration could tell.

    `link_rate` B/s on the wire, what flow control and ordered sets leave of the raw rate.
    `half_line` B of the wire's time, what reading one sector of a line of the host costs beside it.
    `request_rate` 1/s, reads the chip sends at most (its outstanding reads over their round trip);
    `sm_request_rate` 1/s, the same of one multiprocessor.
    `latency` s, a turn of a warp: index, round trip over the link, store.
    `start_up` s, launching a kernel, and its first reads and last stores; `index_latency` s, what
    comes before them where a warp has to look up in device memory which row to read.
    `copy_engine_start_up` s, the start-up of a copy by the copy engine.
    """

    link_rate: float
    half_line: float
    request_rate: float
    sm_request_rate: float
    latency: float
    start_up: float
    index_latency: float
    copy_engine_start_up: float

    def values(self) -> Floats:
        return np.array(astuple(self), dtype=float)


MEANING: Final = {
    "link_rate": "effective rate of the link, bytes on the wire",
    "half_line": "cost of half a line of the host, in bytes on the wire",
    "request_rate": "reads of host memory the chip sends at most",
    "sm_request_rate": "reads of host memory one multiprocessor sends at most",
    "latency": "a warp's turn: index, round trip, store",
    "start_up": "start-up of a kernel",
    "index_latency": "looking up the first row in device memory",
    "copy_engine_start_up": "start-up of a copy",
}
UNITS: Final = {
    "link_rate": "B/s",
    "half_line": "B",
    "request_rate": "1/s",
    "sm_request_rate": "1/s",
    "latency": "s",
    "start_up": "s",
    "index_latency": "s",
    "copy_engine_start_up": "s",
}
BINDS: Final = {
    "link_rate": "link",
    "half_line": "link",
    "request_rate": "request rate",
    "sm_request_rate": "SM request rate",
    "latency": "in flight",
}
"""The term that each parameter sets; start-ups and the index are part of every time."""


def work_of(access: Access, sms: int) -> tuple[float, ...]:
    """A row of the model's input, in the order of WORK; the last two are 1 where they apply.

    Turns are how often each of the resident warps must fill what it has in flight, one at least;
    the copy engine sends no requests of SMs and has no warps.
    """
    traffic = traffic_of(access)
    if access.reads == "copy_engine":
        return traffic.wire_bytes, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0
    fills = access.payload_bytes / access.in_flight_bytes
    warps = min(fills, access.warps or sms * WARPS_PER_SM, sms * WARPS_PER_SM)
    used = min(sms, math.ceil(warps / WARPS_PER_BLOCK))
    requests = traffic.completions
    indexed = float(access.reads != "contiguous")
    of_the_link = (traffic.wire_bytes, traffic.half_lines, requests)
    return *of_the_link, requests / used, fills / warps, indexed, 0.0


def term_seconds(work: Floats, parameters: Floats) -> Floats:
    """Seconds of each of TERMS [cases, 5], from rows of `work_of` [cases, 7]."""
    known = Parameters(*parameters)
    wire, half_lines, requests, requests_of_an_sm, turns, indexed, copy_engine = work.T
    return np.column_stack(
        [
            (wire + half_lines * known.half_line) / known.link_rate,
            requests / known.request_rate,
            requests_of_an_sm / known.sm_request_rate,
            turns * known.latency,
            np.where(
                copy_engine > 0,
                known.copy_engine_start_up,
                known.start_up + indexed * known.index_latency,
            ),
        ]
    )


def predicted_seconds(work: Floats, parameters: Floats) -> Floats:
    """The model's time of each row of `work`."""
    terms = term_seconds(work, parameters)
    total: Floats = terms[:, :-1].max(axis=1) + terms[:, -1]
    return total
