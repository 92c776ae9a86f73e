"""The model: the time of an operation is its start-up and the largest of what it must wait for.

| term | seconds |
|---|---|
| link | bytes on the wire / effective rate of the link |
| request rate | requests / what the chip sends at most in a second |
| in flight | turns of its warps * time of a turn (Little's law) |
| start-up | fixed |
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.model.access import Access
from analysis.model.traffic import traffic_of

Floats = npt.NDArray[np.float64]

TERMS: Final = ("link", "request rate", "in flight", "start-up")
"""Columns of `term_seconds`."""

WARPS_PER_SM: Final = 64
"""Warps resident on a multiprocessor at most (CUDA C++ Programming Guide, compute capabilities 8.0,
9.0 and 10.0). A grid that large is bound by the link long before, so that registers and chips with
48 are left out."""


@dataclass(frozen=True)
class Parameters:
    """What a machine's link and chip can do; NaN where no calibration could tell.

    `link_rate` B/s on the wire, what flow control and ordered sets leave of the raw rate.
    `request_rate` 1/s, reads the chip sends at most (its outstanding reads over their round trip).
    `latency` s, a turn of a warp: index, round trip over the link, store.
    `start_up` s, launching a kernel, and its first reads and last stores. `copy_engine_start_up` s,
    the same of a copy by the copy engine.
    """

    link_rate: float
    request_rate: float
    latency: float
    start_up: float
    copy_engine_start_up: float

    def values(self) -> Floats:
        return np.array(astuple(self), dtype=float)


MEANING: Final = {
    "link_rate": "effective rate of the link, bytes on the wire",
    "request_rate": "reads of host memory the chip sends at most",
    "latency": "a warp's turn: index, round trip, store",
    "start_up": "start-up of a kernel",
    "copy_engine_start_up": "start-up of a copy",
}
UNITS: Final = {
    "link_rate": "B/s",
    "request_rate": "1/s",
    "latency": "s",
    "start_up": "s",
    "copy_engine_start_up": "s",
}
BINDS: Final = {
    "link_rate": "link",
    "request_rate": "request rate",
    "latency": "in flight",
}
"""The term that each parameter sets; start-ups are part of every time."""


def work_of(access: Access, sms: int) -> tuple[float, float, float, float]:
    """A row of the model's input: wire bytes, requests, turns, and 1 for the copy engine.

    Turns are how often each of the resident warps must fill what it has in flight, one at least;
    the copy engine sends no requests of SMs and has no warps.
    """
    traffic = traffic_of(access)
    if access.reads == "copy_engine":
        return traffic.wire_bytes, 0.0, 0.0, 1.0
    fills = access.payload_bytes / access.in_flight_bytes
    warps = min(fills, access.warps or sms * WARPS_PER_SM, sms * WARPS_PER_SM)
    return traffic.wire_bytes, traffic.completions, fills / warps, 0.0


def term_seconds(work: Floats, parameters: Floats) -> Floats:
    """Seconds of each of TERMS [cases, 4], from rows of `work_of` [cases, 4]."""
    link_rate, request_rate, latency, start_up, copy_engine_start_up = parameters
    wire, requests, turns, copy_engine = work.T
    return np.column_stack(
        [
            wire / link_rate,
            requests / request_rate,
            turns * latency,
            np.where(copy_engine > 0, copy_engine_start_up, start_up),
        ]
    )


def predicted_seconds(work: Floats, parameters: Floats) -> Floats:
    """The model's time of each row of `work`."""
    terms = term_seconds(work, parameters)
    total: Floats = terms[:, :3].max(axis=1) + terms[:, 3]
    return total
