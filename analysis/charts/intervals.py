"""Intervals beside the figures that they are of."""

from __future__ import annotations

from typing import Any, Final

REACH: Final = 1.25
"""How far the interval of a rate is drawn, in multiples of the highest one drawn with it."""

IS_WHOLE: Final = "datum.end === datum.reach"
"""Whether an interval of `with_reach` is drawn to its upper end."""


def with_reach(measured: Any, value: str) -> Any:
    """`measured` with `reach`, to where the interval of each `value` is drawn, and `end`, where it
    ends. Rates have a linear axis, on which one that few runs leave wide would take the room of all
    others; times have a logarithmic one, and are drawn to their ends."""
    ending = measured.transform_calculate(end=f"datum.{value}_high")
    if value != "rate":
        return ending.transform_calculate(reach="datum.end")
    highest = ending.transform_joinaggregate(highest=f"max({value})", groupby=["machine"])
    return highest.transform_calculate(reach=f"min(datum.end, {REACH} * datum.highest)")
