"""Reasons for lowered clocks, as the column `throttle` holds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SLOWDOWNS: Final = frozenset(
    {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"}
)
"""Slowdowns with an external cause: heat, or a lack of power. The power cap is not among them: it
is part of how this GPU runs this work."""


def reasons(throttle: Iterable[str]) -> set[str]:
    """Every reason in some rows of the column, where they are joined by a bar."""
    return {reason for one in throttle for reason in one.split("|")} - {""}


def slowed_share(throttle: Iterable[str]) -> float:
    """The share of the rows with a reason from outside."""
    rows = list(throttle)
    return sum(bool(SLOWDOWNS & reasons([one])) for one in rows) / len(rows)
