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


def reasons(throttle: Iterable[str]) -> set[str]:
    """Every reason in some rows of the column `throttle`, where they are joined by a bar."""
    return {reason for one in throttle for reason in one.split("|")} - {""}


def slowed_share(throttle: Iterable[str]) -> float:
    """The share of the rows with a slowdown from outside."""
    rows = list(throttle)
    return sum(bool(SLOWDOWNS & reasons([one])) for one in rows) / len(rows)


def disturbances(rounds: Sequence[Watch], cores: int) -> list[list[str]]:
    """Disturbances of each round of one run on a host with `cores` cores, in words.

    A round without conditions, as older journals have them, counts as undisturbed.
    """
    return [list(_reasons(one, cores)) for one in rounds]


def _reasons(one: Watch, cores: int) -> Iterator[str]:
    around = (one.before, one.after)
    busy = cores * max(_known(around, "busy_share"), default=0.0)
    if busy > BUSY_CORES:
        yield f"others kept {busy:.1f} cores busy"
    stolen = _known(around, "steal_s")
    share = (stolen[-1] - stolen[0]) / (cores * one.seconds) if stolen and one.seconds else 0.0
    if share > STEAL_SHARE:
        yield f"the hypervisor took {share:.1%} of the cores' time"
    stops = _known(around, "throttled_periods")
    if stops and stops[-1] > stops[0]:
        yield f"the CPU quota stopped this process in {stops[-1] - stops[0]:.0f} periods"
    if one.newcomers:
        yield f"processes {sorted(one.newcomers)} came to the GPU"
    if slowed := sorted(SLOWDOWNS.intersection(one.throttle)):
        yield f"the GPU lowered its clocks: {', '.join(slowed)}"


def _known(looks: Sequence[Look], name: str) -> list[float]:
    return [value for look in looks if (value := look.get(name)) is not None]
