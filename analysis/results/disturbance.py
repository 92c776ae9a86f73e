"""Disturbances of a round: other users of the CPU or GPU, stolen time, a quota of the CPU, a slowed
GPU.

In 180 rounds on four quiet H200 hosts, others used at most half a core and stole at most 0.2 %.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from analysis.results.store.keys import Look

SLOWDOWNS: Final = frozenset(
    {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"}
)
"""Slowdowns with an external cause. The power cap is part of how a GPU runs this work."""
BUSY_CORES: Final = 1
"""Maximum load of other processes, in cores."""
STEAL_SHARE: Final = 0.01
"""Share of all cores' time that the hypervisor may give to others."""


def reasons(throttle: Iterable[str]) -> set[str]:
    """Every reason in some rows of the column `throttle`, where they are joined by a bar."""
    return {reason for row in throttle for reason in row.split("|")} - {""}


def disturbances(
    before: Look,
    after: Look,
    seconds: float,
    cores: int,
    newcomers: Collection[int] = (),
    throttle: Collection[str] = (),
) -> Iterator[str]:
    """What disturbed a round, in words: from the host before and after it, its number of cores, the
    round's length, new processes on the GPU, and reasons for lowered clocks."""
    if (busy := cores * max(before.busy_share or 0.0, after.busy_share or 0.0)) > BUSY_CORES:
        yield f"others kept {busy:.1f} cores busy"
    stolen_s = _rise(before.steal_s, after.steal_s)
    if (share := stolen_s / (cores * seconds)) > STEAL_SHARE:
        yield f"the hypervisor took {share:.1%} of the cores' time"
    if (stops := _rise(before.throttled_periods, after.throttled_periods)) > 0:
        yield f"the CPU quota stopped this process in {stops:.0f} periods"
    if newcomers:
        yield f"processes {sorted(newcomers)} came to the GPU"
    if slowed := sorted(SLOWDOWNS.intersection(throttle)):
        yield f"the GPU lowered its clocks: {', '.join(slowed)}"


def _rise(before: float | None, after: float | None) -> float:
    """The growth of a count; 0 where it is unknown."""
    return 0.0 if before is None or after is None else after - before
