"""Time as a linear function of size: latency and bandwidth."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from analysis.api.study import Floats

MIN_SIZES: Final = 4
"""Two sizes for the line, and two to assess the fit."""


class Line(NamedTuple):
    """`latency` in s, and `bandwidth` in B/s."""

    latency: float
    bandwidth: float

    def seconds(self, size: Floats) -> Floats:
        """The line's times [sizes] for sizes in bytes."""
        return self.latency + size / self.bandwidth


def fit_line(size: Floats, seconds: Floats) -> Line | None:
    """The line through times `seconds` [sizes] of `size` bytes [sizes]; None for too few sizes.

    Least squares of the logarithms of times, so that relative errors count alike at every size.
    """
    from scipy.optimize import curve_fit  # here, as it is slow to import and few fit a line

    if len(set(size.tolist())) < MIN_SIZES:
        return None

    def logs(size: Floats, latency: float, bandwidth: float) -> Floats:
        return np.asarray(np.log(Line(np.exp(latency), np.exp(bandwidth)).seconds(size)))

    start = np.log([seconds.min(), size.max() / seconds.max()])
    solved, _ = curve_fit(logs, size, np.log(seconds), start, method="trf", x_scale="jac")
    return Line(*(float(one) for one in np.exp(solved)))
