"""Table for the charts: one point per machine, variant, case and time, measured or not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, Final

import pandas as pd

from analysis.base.quantities import digits, digits_interval, quantity, quantity_interval
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.basis import figures_by_run, is_headline, spread
from analysis.site.facts.figures import Figures
from analysis.site.facts.rows import MeasuredRow, runs_text
from analysis.study import Case, Variant, parse_case
from analysis.study.access import access_of

CASE_PREFIX: Final = "case_"
"""Prefix of the columns with keys of the case."""
NOT_MEASURED: Final = "not measured"
COLUMNS: Final = [
    *("machine", "variant", "title", "role", "state", "case", "payload_bytes", "metric", "clock"),
    *("is_default", "seconds", "seconds_low", "seconds_high", "rate", "rate_low", "rate_high"),
    *("share", "short", "interval", "runs", "hosts", "by_run", "note", "href"),
]

Point = dict[str, Any]


def points_table(figures: Figures) -> pd.DataFrame:
    """Figures to draw, and missing ones, with COLUMNS and a column `case_<key>` per case key.

    `state` is `measured`, `stale`, `skipped`, `failed`, `not measured` or `published`. `seconds*`
    are in s, `rate*` in GB/s; `share` is relative to the fastest ceiling's rate. `is_default` is 1
    if `metric` is the one by which the variant is compared. `short` and `interval` are formatted.
    """
    keys = [f"{CASE_PREFIX}{key}" for key in figures.study.case_keys]
    points = [*_of_variants(figures), *_published(figures)]
    table = pd.DataFrame(points, columns=[*COLUMNS, *keys])
    words = ["interval", "by_run", "note"]
    return table.assign(**table[words].astype("object").fillna(""))


def _of_variants(figures: Figures) -> Iterator[Point]:
    """One point per measured time, else one with the reason for its absence."""
    study, measured = figures.study, {key[:3] for key in figures.measured}
    for machine, variant in product(figures.machines, study.subjects):
        preferred = study.metrics_for(variant)
        for case in variant.cases:
            key = machine, variant.name, case.id
            times = {
                metric: row
                for metric in study.time_metrics
                if (row := figures.find(*key, metric)) is not None
            }
            default = next((metric for metric in times if metric in preferred), "")
            for metric, row in times.items():
                point = _place(figures, machine, variant, case, metric)
                yield {
                    **point,
                    **_measured(figures, variant, case, row),
                    "is_default": int(metric == default),
                }
            skipped = figures.skipped.get(key)
            # Where other metrics than times were measured, no point is missing; and few machines
            # measure the full grid.
            if key not in measured and (skipped or case.grid != "full"):
                state = skipped.status if skipped else NOT_MEASURED
                point = _place(figures, machine, variant, case, preferred[0])
                note = skipped.reason if skipped else ""
                yield {**point, "state": state, "short": state, "note": note, "is_default": 1}


def _published(figures: Figures) -> Iterator[Point]:
    """Points of the published figures, repeated for every machine."""
    for row, machine in product(figures.printed, figures.machines):
        variant = figures.study.variant(row.variant)
        case = Case(parse_case(row.case), row.payload_bytes, "default")
        yield {
            **_place(figures, machine, variant, case, row.metric),
            **_values(figures, case, row.seconds, math.nan, math.nan),
            "state": "published",
            "is_default": 1,
            "note": f"{row.printed} {row.unit_printed} in {row.source}",
        }


def _place(figures: Figures, machine: str, variant: Variant, case: Case, metric: str) -> Point:
    """Columns that identify a figure."""
    return {
        "machine": machine,
        "variant": variant.name,
        "title": variant.title,
        "role": variant.role,
        "case": case.id,
        "payload_bytes": case.payload_bytes,
        "metric": metric,
        "clock": figures.study.metrics[metric].label,
        "href": samples_address(machine, figures.study.name, variant.name, case.id, metric),
        **{f"{CASE_PREFIX}{key}": value for key, value in case.values.items()},
    }


def _measured(figures: Figures, variant: Variant, case: Case, row: MeasuredRow) -> Point:
    """Columns of a measured figure. Its runs are in place of an interval that they do not allow."""
    low, note = shortest_time(figures, case, row)
    values = _values(figures, case, row.median, low, row.ci_high) | {"note": note}
    is_rate = figures.are_rates and case.payload_bytes > 0
    if not is_headline(row):
        values["interval"] = spread(row, "", lambda time: _short(case, time, is_rate=is_rate))
        values["note"] = ""
    by_run = row.by_run if row.runs > 1 else ""
    if by_run and is_rate:
        by_run = runs_text(case.payload_bytes / time / 1e9 for time in figures_by_run(row))
    limit = figures.limit_share(row.machine, variant, case, row.metric)
    return values | {
        "state": "stale" if row.stale else "measured",
        "share": limit.share if limit else math.nan,
        "runs": row.runs,
        "hosts": row.hosts,
        "by_run": by_run,
    }


def shortest_time(figures: Figures, case: Case, row: MeasuredRow) -> tuple[float, str]:
    """The lower end of a time's interval, and a note where that was raised: no rate reaches beyond
    that of the ceiling or link, unless the figure itself does. NaN without an interval."""
    variant, chip = figures.study.variant(row.variant), figures.chips.get(row.machine)
    limit = figures.limit_share(row.machine, variant, case, row.metric)
    access = access_of(variant, case)
    bounds = [(row.median * limit.share, "ceiling")] if limit else []
    # The link bounds what moves one range.
    if chip and access and access.reads in ("contiguous", "copy_engine"):
        bounds.append((access.payload_bytes / chip.parameters.link_rate, "link"))
    least, bound = max(bounds, default=(0.0, ""))
    if math.isnan(row.ci_low) or row.ci_low >= least:
        return row.ci_low, ""
    end = f"the {bound}'s rate"
    if row.median < least:
        return max(row.ci_low, row.median), f"interval ends at the figure, which exceeds {end}"
    return least, f"interval ends at {end}"


def _short(case: Case, seconds: float, *, is_rate: bool) -> str:
    """The rate or time for the mark."""
    return digits(case.payload_bytes / seconds / 1e9) if is_rate else quantity(seconds, "s")


def _values(figures: Figures, case: Case, seconds: float, low: float, high: float) -> Point:
    """Times in s and rates in GB/s, and their formatted text for the mark."""
    is_rate = figures.are_rates and case.payload_bytes > 0
    # The longest time is the lowest rate.
    rates = [case.payload_bytes / time / 1e9 for time in (seconds, high, low)]
    values: Point = {"seconds": seconds, "seconds_low": low, "seconds_high": high}
    if case.payload_bytes:
        values |= dict(zip(("rate", "rate_low", "rate_high"), rates, strict=True))
    return values | {
        "short": _short(case, seconds, is_rate=is_rate),
        "interval": digits_interval(rates[1], rates[2])
        if is_rate
        else quantity_interval(seconds, low, high, "s"),
    }
