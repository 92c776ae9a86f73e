"""Conditions that change CPU times between hosts and within one, measured around every round.

The spin and the copy are the same work everywhere, so their times show how fast this core and
this memory are now.
"""

from __future__ import annotations

import time
from functools import cache
from timeit import repeat
from typing import Final

import numpy as np
import psutil

from analysis.base.limits import throttled_periods
from analysis.measure.cpu import core_clock_hz
from analysis.results.store.keys import Look

SPIN_TURNS: Final = 200_000
COPY_BYTES: Final = 64 * 2**20
REPEATS: Final = 5
"""Repetitions, of which the shortest counts: a disturbance is no property of the host."""


def conditions() -> Look:
    """Measure the host, in about a tenth of a second.

    `spin_s`: SPIN_TURNS additions in Python on one core. `copy_bytes_per_s`: bytes read and written
    as one core copies COPY_BYTES. `busy_share`: share of the cores that others used meanwhile.
    """
    source, target = _buffers()
    psutil.cpu_percent()  # begins the time that the next call is about
    started, own = time.perf_counter(), time.process_time()
    spin_s = min(repeat(_spin, number=1, repeat=REPEATS))
    copy_s = min(repeat(lambda: np.copyto(target, source), number=1, repeat=REPEATS))
    available_s = (time.perf_counter() - started) * (psutil.cpu_count() or 1)
    own_share = (time.process_time() - own) / available_s
    frequency = psutil.cpu_freq()
    return Look(
        spin_s=spin_s,
        copy_bytes_per_s=2 * COPY_BYTES / copy_s,
        cpu_mhz=round(frequency.current, 1) if frequency else None,
        core_hz=core_clock_hz(),
        busy_share=max(0.0, round(psutil.cpu_percent() / 100 - own_share, 3)),
        steal_s=psutil.cpu_times().steal,
        throttled_periods=throttled_periods(),
    )


def _spin() -> None:
    total = 0
    for turn in range(SPIN_TURNS):
        total += turn


@cache
def _buffers() -> tuple[np.ndarray, np.ndarray]:
    """Source and target of the copies, kept because the first access to their pages takes longer
    than the copies."""
    return np.ones(COPY_BYTES, np.uint8), np.zeros(COPY_BYTES, np.uint8)
