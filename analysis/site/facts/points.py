"""Table for the charts: one point per machine, variant, case and time, measured or not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from analysis.base.quantities import (
    digits,
    digits_interval,
    quantity,
    quantity_interval,
    with_interval,
)
from analysis.base.records import columns
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.basis import basis_phrase, figures_by_run, is_headline, spread
from analysis.site.facts.figures import NOT_MEASURED, Figures
from analysis.site.facts.rows import RUN_SEPARATOR, MeasuredRow
from analysis.study import Case, Variant, parse_case
from analysis.study.access import access_of

CASE_PREFIX = "case_"
"""Prefix of the columns with keys of the case."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A figure to draw, or a missing one: `state` is `measured`, `stale`, `skipped`, `failed`, `not
    measured` or `published`.

    `seconds*` are in s, `rate*` in GB/s; `share` is relative to the fastest ceiling's rate.
    `is_default` is 1 if `metric` is the one by which the variant is compared. `label`, `short` and
    `interval` are the formatted figure.
    """

    machine: str
    variant: str
    title: str
    role: str
    state: str
    case: str
    payload_bytes: int
    metric: str
    clock: str
    is_default: int
    seconds: float = math.nan
    seconds_low: float = math.nan
    seconds_high: float = math.nan
    rate: float = math.nan
    rate_low: float = math.nan
    rate_high: float = math.nan
    share: float = math.nan
    label: str
    short: str
    interval: str = ""
    n: float = math.nan
    rounds: float = math.nan
    runs: float = math.nan
    hosts: float = math.nan
    by_run: str = ""
    verified: float = math.nan
    apart: float = math.nan
    throttled: float = math.nan
    run: str = ""
    note: str = ""
    href: str


COLUMNS = list(columns(Point))


def points_table(figures: Figures) -> pd.DataFrame:
    """Columns of Point, and one column `case_<key>` per case key, empty for cases without it."""
    study = figures.study
    points = [
        _with_keys(point, case)
        for machine in figures.machines
        for variant in study.subjects
        for case in variant.cases
        for point in _of_case(figures, machine, variant, case)
    ]
    points += [_with_keys(point, case) for point, case in _published(figures)]
    keys = [f"{CASE_PREFIX}{key}" for key in study.case_keys]
    return pd.DataFrame(points, columns=[*COLUMNS, *keys])


def _with_keys(point: Point, case: Case) -> dict[str, object]:
    keys = {f"{CASE_PREFIX}{key}": value for key, value in case.values.items()}
    return vars(point) | keys


def _of_case(figures: Figures, machine: str, variant: Variant, case: Case) -> list[Point]:
    """One point per measured metric, else one with the reason for its absence."""
    points: list[Point] = []
    preferred = figures.study.metrics_for(variant)
    for metric in figures.study.time_metrics:
        row = figures.find(machine, variant.name, case.id, metric)
        if row is None:
            continue
        limit = figures.limit_share(machine, variant, case, metric)
        is_first = not any(point.is_default for point in points)
        points.append(
            Point(
                **_place(figures, machine, variant, case, metric),
                **_measured(figures, case, row),
                state="stale" if row.stale else "measured",
                share=limit.share if limit else math.nan,
                is_default=int(is_first and metric in preferred),
                n=row.n,
                rounds=row.rounds,
                runs=row.runs,
                hosts=row.hosts,
                by_run=_by_run(figures, case, row),
                verified=row.verified,
                apart=row.apart,
                throttled=row.throttled,
                run=row.run,
            )
        )
    if points or (machine, variant.name, case.id) in figures.measured_cases:
        return points  # none where other metrics than times were measured
    state, reason = figures.absence(machine, variant, case)
    if state == NOT_MEASURED and case.grid == "full":
        return []  # few machines measure the full grid, so such a case does not count as missing
    place = _place(figures, machine, variant, case, preferred[0])
    return [Point(**place, state=state, label=state, short=state, note=reason, is_default=1)]


def _place(
    figures: Figures, machine: str, variant: Variant, case: Case, metric: str
) -> dict[str, Any]:
    """Fields of a point that identify its figure."""
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
    }


def _measured(figures: Figures, case: Case, row: MeasuredRow) -> dict[str, Any]:
    """`_values` of a measured figure. Its label has the runs if these allow no interval."""
    low, note = shortest_time(figures, case, row)
    values = _values(figures, case, row.median, low, row.ci_high)
    if is_headline(row):
        return values | {"note": note}
    write = partial(_short, figures, case)
    runs = spread(row, "", write)
    label = with_interval(values["short"], basis_phrase(row).split(",")[0])
    return values | {"label": label, "interval": runs}


def shortest_time(figures: Figures, case: Case, row: MeasuredRow) -> tuple[float, str]:
    """The lower end of a time's interval, and a note where that was raised: no rate reaches beyond
    that of the ceiling or link, unless the figure itself does. NaN without an interval."""
    limit = figures.limit_share(row.machine, figures.study.variant(row.variant), case, row.metric)
    of_ceiling = row.median * limit.share if limit is not None else 0.0
    of_link = _link_seconds(figures, case, row)
    least, bound = max((of_ceiling, "ceiling"), (of_link, "link"))
    if math.isnan(row.ci_low) or row.ci_low >= least:
        return row.ci_low, ""
    end = f"the {bound}'s rate"
    if row.median < least:
        end = f"the figure, which exceeds {end}"
    return max(row.ci_low, min(row.median, least)), f"interval ends at {end}"


def _link_seconds(figures: Figures, case: Case, row: MeasuredRow) -> float:
    """Seconds of the payload at the link's calibrated rate; 0 unless the variant moves one range
    over a calibrated link."""
    access = access_of(figures.study.variant(row.variant), case)
    chip = figures.chips.get(row.machine)
    if chip is None or access is None or access.reads not in ("contiguous", "copy_engine"):
        return 0.0
    return access.payload_bytes / chip.parameters.link_rate


def _short(figures: Figures, case: Case, seconds: float) -> str:
    """The rate or time for the mark."""
    if figures.are_rates and case.payload_bytes:
        return digits(case.payload_bytes / seconds / 1e9)
    return quantity(seconds, "s")


def _values(
    figures: Figures, case: Case, seconds: float, low: float, high: float
) -> dict[str, Any]:
    """Times in s and rates in GB/s, and their formatted text for the mark."""
    values: dict[str, Any] = {"seconds": seconds, "seconds_low": low, "seconds_high": high}
    short, interval = _short(figures, case, seconds), quantity_interval(seconds, low, high, "s")
    if case.payload_bytes:
        # The longest time is the lowest rate.
        rates = [case.payload_bytes / time / 1e9 for time in (seconds, high, low)]
        values |= dict(zip(("rate", "rate_low", "rate_high"), rates, strict=True))
        if figures.are_rates:
            interval = digits_interval(rates[1], rates[2])
    label = with_interval(short, interval)
    return values | {"label": label, "short": short, "interval": interval}


def _by_run(figures: Figures, case: Case, row: MeasuredRow) -> str:
    """Rates of the single runs if rates are drawn, otherwise times; empty for one run."""
    if row.runs < 2:
        return ""
    if not (figures.are_rates and case.payload_bytes):
        return row.by_run
    rates = (case.payload_bytes / time / 1e9 for time in figures_by_run(row))
    return RUN_SEPARATOR.join(f"{rate:.7g}" for rate in rates)


def _published(figures: Figures) -> Iterator[tuple[Point, Case]]:
    """Points of the published figures, repeated for every machine."""
    for row in figures.printed:
        variant = figures.study.variant(row.variant)
        case = Case(parse_case(row.case), row.payload_bytes, "default")
        for machine in figures.machines:
            point = Point(
                **_place(figures, machine, variant, case, row.metric),
                **_values(figures, case, row.seconds, math.nan, math.nan),
                state="published",
                is_default=1,
                note=f"{row.printed} {row.unit_printed} in {row.source}",
            )
            yield point, case
