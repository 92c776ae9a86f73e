"""Intervals beside the figures that they are of."""

from __future__ import annotations

from typing import Any, Final

from analysis.site.facts.rows import RUN_SEPARATOR

REACH: Final = 1.25
"""How far the interval of a rate is drawn, in multiples of the highest one drawn with it."""

BEYOND: Final = 3
"""How far the interval of a time is drawn, as a factor beyond the longest and the shortest time of
the chart."""

ENDS: Final = {"begin": "low", "reach": "high"}
"""Columns of a clipped interval by `within_reach`, with those of the whole interval."""


def within_reach(measured: Any, value: str) -> Any:
    """Rows with an interval, clipped to `begin` and `reach`, so that wide intervals of few runs do
    not dominate the axis.
    """
    extremes = measured.transform_joinaggregate(
        least=f"min({value})", most=f"max({value})", groupby=["machine"]
    )
    # Rates have a linear axis from 0, times a logarithmic one.
    least, most = (0, REACH) if value == "rate" else (1 / BEYOND, BEYOND)
    return extremes.transform_calculate(
        begin=f"max(datum.{value}_low, {least} * datum.least)",
        reach=f"min(datum.{value}_high, {most} * datum.most)",
    ).transform_filter(f"isValid(datum.{value}_low) && isValid(datum.{value}_high)")


def run_by_run(measured: Any) -> Any:
    """A row for each run of `measured` figures that have several, with the run's `of_run`."""
    by_run = measured.transform_filter("datum.by_run").transform_calculate(
        each=f"split(datum.by_run, '{RUN_SEPARATOR}')"
    )
    return by_run.transform_flatten(["each"]).transform_calculate(of_run="toNumber(datum.each)")


def drawn_whole(reaching: Any, value: str, end: str) -> Any:
    """What of `within_reach` is drawn to its `end`, and so may have a tick there."""
    return reaching.transform_filter(f"datum.{end} === datum.{value}_{ENDS[end]}")
