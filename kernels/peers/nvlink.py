"""A model of NVLink like that of the host link: the cost of data, of packets and of the start.

A GPU reads rows of the peer's memory as it reads those of the host: a packet per line of 128 bytes
that a row touches, in whole sectors of 32 bytes. The cost of a header is not known, so it is
fitted. Every gather waits for its first answer, which is therefore part of the start. Later waits
are hidden if all SMs read, as they do here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import least_squares

from analysis.api.model import CAUCHY_SCALE, FLOOR, is_third, traffic_of
from analysis.api.quantities import quantity
from analysis.api.study import Access, Floats

WITHIN: Final = 0.05
"""The largest residual of a correct prediction."""
MIN_CASES: Final = 6
"""Two cases per parameter."""


@dataclass(frozen=True)
class NvLink:
    """Parameters: the rate on the wire in B/s, bytes of a packet beside its data, and seconds of
    the start."""

    rate: float
    header_bytes: float
    start_up: float

    def seconds(self, work: Floats) -> Floats:
        """Predicted time of each row of `work_of` [cases, 2]."""
        data, packets = work.T
        total: Floats = self.start_up + (data + packets * self.header_bytes) / self.rate
        return total

    def __str__(self) -> str:
        said = (
            f"{quantity(self.rate, 'B/s')} on the wire",
            f"{self.header_bytes:.0f} B beside the data of a packet",
            f"a start of {quantity(self.start_up, 's')}",
        )
        return "\n".join(said)


def work_of(row_bytes: int, rows: int) -> tuple[float, float]:
    """Bytes of data and packets of a gather."""
    payload = row_bytes * rows
    access = Access(
        "warp_rows", payload, row_bytes, stride_bytes=row_bytes, in_flight_bytes=row_bytes
    )
    traffic = traffic_of(access)
    return traffic.data_bytes, traffic.completions


def fit(work: Floats, seconds: Floats) -> NvLink | None:
    """Least-squares fit to the cases that are not held back; None for too few cases."""
    fitted = ~held_back(len(seconds))
    work, seconds = work[fitted], seconds[fitted]
    if len(seconds) < MIN_CASES:
        return None
    start = np.array([(work[:, 0] / seconds).max(), 16.0, seconds.min() / 2])

    def residuals(multiples: Floats) -> Floats:
        predicted = NvLink(*(start * multiples)).seconds(work)
        return np.asarray(np.log(predicted / seconds) / FLOOR)

    multiples = np.ones(len(start))
    for loss in ("linear", "cauchy"):  # the robust loss starts from a fit to all cases
        multiples = least_squares(
            residuals,
            multiples,
            bounds=([0.01, 0, 0], math.inf),
            loss=loss,
            f_scale=CAUCHY_SCALE,
        ).x
    return NvLink(*(start * multiples))


def held_back(count: int) -> np.ndarray:
    """Mask of the cases held back from the fit, out of `count` in their order."""
    return np.array([is_third(number) for number in range(count)], dtype=bool)


def hits(residuals: Floats) -> str:
    """A sentence with the number of residuals within WITHIN."""
    near = int((np.abs(residuals) <= WITHIN).sum())
    return f"{near} of {len(residuals)} held back within {WITHIN:.0%}"
