"""Intervals beside the figures that they are of."""

from __future__ import annotations

from typing import Any, Final

REACH: Final = 1.25
"""How far the interval of a rate is drawn, in multiples of the highest one drawn with it."""

BEYOND: Final = 3
"""How far `between_reaches` has the interval of a time drawn: so many times beyond the longest and
the shortest one drawn with it."""

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


def between_reaches(measured: Any, value: str) -> Any:
    """What of `measured` has an interval, with `begin` and `reach`, between which it is drawn on a
    logarithmic axis: one that few runs leave many decades wide would take the room of all others.
    """
    ends = measured.transform_joinaggregate(
        shortest=f"min({value})", longest=f"max({value})", groupby=["machine"]
    )
    return ends.transform_calculate(
        begin=f"max(datum.{value}_low, datum.shortest / {BEYOND})",
        reach=f"min(datum.{value}_high, {BEYOND} * datum.longest)",
    ).transform_filter(f"isValid(datum.{value}_low) && isValid(datum.{value}_high)")
