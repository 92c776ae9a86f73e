"""A model of NVLink like that of the link to the host: what data, packets and a start cost.

Rows of the peer's memory are asked for as those of the host are, a packet for each line of 128
bytes that a row touches, in whole sectors of 32 bytes. What a header costs is not known beforehand,
so it is fitted, too. No gather is without the wait for its first answer, so that it is part of the
start. Later ones are hidden where all multiprocessors ask, as they do here.
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
    """Parameters: the rate of the link in B/s on the wire, bytes of a packet beside its data, and
    seconds of the start."""

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
    """Least squares over the cases that are not held back; None where there are too few."""
    fitted = ~held_back(len(seconds))
    work, seconds = work[fitted], seconds[fitted]
    if len(seconds) < MIN_CASES:
        return None
    start = np.array([(work[:, 0] / seconds).max(), 16.0, seconds.min() / 2])

    def residuals(multiples: Floats) -> Floats:
        predicted = NvLink(*(start * multiples)).seconds(work)
        return np.asarray(np.log(predicted / seconds) / FLOOR)

    multiples = np.ones(len(start))
    for loss in ("linear", "cauchy"):  # no case is left out before all have had their say
        multiples = least_squares(
            residuals,
            multiples,
            bounds=([0.01, 0, 0], math.inf),
            loss=loss,
            f_scale=CAUCHY_SCALE,
        ).x
    return NvLink(*(start * multiples))


def held_back(count: int) -> np.ndarray:
    """Which of so many cases, in their order, the fit does not see."""
    return np.array([is_third(number) for number in range(count)], dtype=bool)


def hits(residuals: Floats) -> str:
    """How many of these are no larger than WITHIN, in words."""
    near = int((np.abs(residuals) <= WITHIN).sum())
    return f"{near} of {len(residuals)} held back within {WITHIN:.0%}"
