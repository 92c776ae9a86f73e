"""Whether the times of a cell's rounds, or of its runs, fall into several groups, so that no one
figure stands for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

import numpy as np
import numpy.typing as npt

MODE_ROUNDS: Final = 3
"""Minimum number of rounds to count as a mode; fewer may be chance."""
MODES_APART: Final = 1.5
"""Minimum ratio of a slower mode's shortest time to a faster mode's longest."""
MODE_SPREADS: Final = 2
"""Minimum ratio of the gap between two modes to their spread. That is stricter than the clean
separation of Ashman, Bird and Zepf ("Detecting Bimodality in Astronomical Datasets", 1994), which
asks it of the distance between the means."""


def count_modes(runs: Sequence[Sequence[float]]) -> int:
    """How many modes the `rounds` of all runs have, each over its run's median: hosts that differ
    are no modes. 1 where a time is not positive."""
    if any(value <= 0 for rounds in runs for value in rounds):
        return 1
    relative = [
        value / middle for rounds in runs for middle in [median(rounds)] for value in rounds
    ]
    if max(relative) < MODES_APART * min(relative):  # as nearly always; no gap is as wide
        return 1
    return _count(np.log(np.sort(relative)))


def count_groups(by_run: Sequence[float]) -> int:
    """Number of groups that the figures of runs fall into: neighbours in their order differ by more
    than MODES_APART. 1 if a figure is not positive."""
    ordered = sorted(by_run)
    if not ordered or ordered[0] <= 0:
        return 1
    return 1 + sum(high > MODES_APART * low for low, high in pairwise(ordered))


def _count(ordered: npt.NDArray[np.float64]) -> int:
    """Number of modes: splits the ordered logarithms at the widest gap, then both halves
    recursively (single linkage in one dimension)."""
    gaps = np.diff(ordered)[MODE_ROUNDS - 1 : len(ordered) - MODE_ROUNDS]
    if not gaps.size:
        return 1
    cut = MODE_ROUNDS + int(np.argmax(gaps))
    below, above = ordered[:cut], ordered[cut:]
    gap = float(above[0] - below[-1])
    spread = math.sqrt((below.var(ddof=1) + above.var(ddof=1)) / 2)
    if gap < math.log(MODES_APART) or gap < MODE_SPREADS * spread:
        return 1
    return _count(below) + _count(above)
