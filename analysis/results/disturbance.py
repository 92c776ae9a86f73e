"""Disturbances of a round: other users of the CPU or GPU, stolen time, a quota of the CPU, a slowed
GPU.

The limits lie outside the range of quiet hosts. In 180 rounds on four H200 hosts, others used at
most half a core, and at most 0.2 % of the cores' time was stolen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SLOWDOWNS: Final = frozenset(
    {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"}
)
"""Slowdowns with an external cause: heat, or a lack of power. The power cap is not among them: it
is part of how this GPU runs this work."""
BUSY_CORES: Final = 1
"""Maximum load of other processes, in cores; above it they compete for cores and memory."""
STEAL_SHARE: Final = 0.01
"""Share of all cores' time that the hypervisor may give to others: less than any difference that is
called one."""
Look = Mapping[str, float | None]
"""The host at one moment, with the fields of `conditions.Conditions`."""


@dataclass(frozen=True)
class Watch:
    """Observations of a round: the host before and after it, its length, processes that came to the
    GPU meanwhile, and reasons for lowered clocks."""

    before: Look
    after: Look
    seconds: float
    newcomers: Collection[int] = ()
    throttle: Collection[str] = ()

    def rise(self, name: str) -> float:
        """The growth of a count of the host; 0 where it is unknown."""
        before, after = self.before.get(name), self.after.get(name)
        return 0.0 if before is None or after is None else after - before


def reasons(throttle: Iterable[str]) -> set[str]:
    """Every reason in some rows of the column `throttle`, where they are joined by a bar."""
    return {reason for row in throttle for reason in row.split("|")} - {""}


def slowed_share(throttle: Sequence[str]) -> float:
    """The share of the rows with a slowdown from outside."""
    return sum(bool(SLOWDOWNS & reasons([row])) for row in throttle) / len(throttle)


def disturbances(rounds: Iterable[Watch], cores: int) -> list[list[str]]:
    """Disturbances of each round of one run on a host with `cores` cores, in words."""
    return [list(_reasons(watch, cores)) for watch in rounds]


def _reasons(watch: Watch, cores: int) -> Iterator[str]:
    busy = cores * max(look.get("busy_share") or 0.0 for look in (watch.before, watch.after))
    if busy > BUSY_CORES:
        yield f"others kept {busy:.1f} cores busy"
    share = watch.rise("steal_s") / (cores * watch.seconds)
    if share > STEAL_SHARE:
        yield f"the hypervisor took {share:.1%} of the cores' time"
    if (stops := watch.rise("throttled_periods")) > 0:
        yield f"the CPU quota stopped this process in {stops:.0f} periods"
    if watch.newcomers:
        yield f"processes {sorted(watch.newcomers)} came to the GPU"
    if slowed := sorted(SLOWDOWNS.intersection(watch.throttle)):
        yield f"the GPU lowered its clocks: {', '.join(slowed)}"
