"""Conditions that change CPU times between hosts and within one, measured around every round.

python -m analysis.measure.conditions

The spin and the copy are the same work everywhere, so their times show how fast this core and
this memory are now.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import psutil

from analysis.base.cli import fail_in_one_line
from analysis.base.limits import throttled_periods
from analysis.measure.cpu_cache import core_clock_hz

SPIN_TURNS: Final = 200_000
COPY_BYTES: Final = 64 * 2**20
REPEATS: Final = 5
"""Repetitions, of which the shortest counts: a disturbance is no property of the host."""
RECENT_S: Final = 1.0


@dataclass(frozen=True)
class Conditions:
    """The host at one moment.

    `spin_s`: seconds of SPIN_TURNS additions in Python on one core. `copy_bytes_per_s`: what one
    core copies between two buffers of COPY_BYTES, bytes read and written. `cpu_mhz`: mean clock the
    system gives, None where it gives none; virtual machines mostly give a constant. `busy_share`:
    share of all cores' time that other processes used meanwhile. `steal_s`: seconds since start
    that the hypervisor kept from this machine's cores, all of them together. `core_hz`: measured
    clock of one core, None where it cannot be measured. `throttled_periods`: number of periods in
    which a CPU quota stopped this process's control groups, None where they do not say.
    """

    spin_s: float
    copy_bytes_per_s: float
    cpu_mhz: float | None
    busy_share: float
    steal_s: float
    core_hz: float | None = None
    throttled_periods: int | None = None


_latest: tuple[float, Conditions] | None = None
"""The newest conditions of this process, after the monotonic time when they were complete."""


def conditions() -> Conditions:
    """Measure the host, in about a tenth of a second."""
    global _latest
    source, target = _buffers()
    psutil.cpu_percent()  # begins the time that the next call is about
    started, own = time.perf_counter(), time.process_time()
    spin_s = min(_spin() for _ in range(REPEATS))
    copy_s = min(_copy(source, target) for _ in range(REPEATS))
    available = (time.perf_counter() - started) * (psutil.cpu_count() or 1)
    own_share = (time.process_time() - own) / available
    found = Conditions(
        spin_s=spin_s,
        copy_bytes_per_s=2 * COPY_BYTES / copy_s,
        cpu_mhz=_clock_mhz(),
        busy_share=max(0.0, round(psutil.cpu_percent() / 100 - own_share, 3)),
        steal_s=steal_seconds(),
        core_hz=core_clock_hz(),
        throttled_periods=throttled_periods(),
    )
    _latest = time.monotonic(), found
    return found


def recent_conditions() -> Conditions:
    """The newest conditions if they are at most RECENT_S old, else new ones.

    The end of a round is the beginning of the next, so the host is measured once between them.
    """
    if _latest is not None and time.monotonic() - _latest[0] <= RECENT_S:
        return _latest[1]
    return conditions()


def _spin() -> float:
    started = time.perf_counter()
    total = 0
    for turn in range(SPIN_TURNS):
        total += turn
    return time.perf_counter() - started


@cache
def _buffers() -> tuple[np.ndarray, np.ndarray]:
    """Source and target of the copies, kept because the first access to their pages takes longer
    than the copies."""
    return np.ones(COPY_BYTES, np.uint8), np.zeros(COPY_BYTES, np.uint8)


def _copy(source: np.ndarray, target: np.ndarray) -> float:
    started = time.perf_counter()
    np.copyto(target, source)
    return time.perf_counter() - started


def _clock_mhz() -> float | None:
    frequency = psutil.cpu_freq()
    return round(frequency.current, 1) if frequency else None


def steal_seconds(stat: Path = Path("/proc/stat")) -> float:
    """Seconds of all cores that the hypervisor gave to others since the system started."""
    fields = stat.read_text().splitlines()[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0.0


def main() -> None:
    """Print the conditions of this host."""
    print(json.dumps(asdict(conditions()), indent=1))


if __name__ == "__main__":
    fail_in_one_line(main)
