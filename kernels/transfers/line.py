"""Time as a linear function of size, t = a + n / b: latency, bandwidth and goodness of fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.api.tables import Estimate, student

Floats = npt.NDArray[np.float64]

MIN_SIZES: Final = 4
"""Two sizes for the line, and two to assess the fit."""


@dataclass(frozen=True)
class Line:
    """`latency` in s, `bandwidth` in B/s, and `half_size` in B, where half the bandwidth is
    reached.

    `misfit` is the largest deviation from the line, as a share of the time.
    """

    latency: Estimate
    bandwidth: Estimate
    half_size: Estimate
    misfit: float

    def seconds(self, size: Floats) -> Floats:
        """The line's times [sizes] for sizes in bytes."""
        return self.latency.value + size / self.bandwidth.value


def fit_line(size: Floats, seconds: Floats) -> Line | None:
    """The line through times `seconds` [sizes] of `size` bytes [sizes]; None for too few sizes.

    Least squares of the logarithms of times, so that relative errors count alike at every size. The
    intervals come from the residuals: they are wide if time is not linear in size.
    """
    from scipy.optimize import curve_fit  # here, as it is slow to import and few fit a line

    if len(size) < MIN_SIZES or len(set(size.tolist())) < MIN_SIZES:
        return None

    def logs(size: Floats, latency: float, bandwidth: float) -> Floats:
        found: Floats = np.log(np.exp(latency) + size / np.exp(bandwidth))
        return found

    start = np.log([seconds.min(), size.max() / seconds.max()])
    solved, spread = curve_fit(logs, size, np.log(seconds), start, method="trf", x_scale="jac")
    quantile = student(len(size) - 2)

    def estimate(*weights: float) -> Estimate:
        middle = float(np.dot(weights, solved))
        reach = quantile * float(np.sqrt(np.dot(weights, spread @ np.array(weights))))
        return Estimate(*(float(np.exp(middle + by)) for by in (0.0, -reach, reach)))

    misfit = float(np.abs(np.exp(logs(size, *solved)) / seconds - 1).max())
    return Line(estimate(1, 0), estimate(0, 1), estimate(1, 1), misfit)
