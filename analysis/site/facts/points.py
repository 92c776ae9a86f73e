"""Table for the charts: one point per machine, variant, case and time, measured or not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from analysis.base.quantities import digits, digits_interval, quantity, quantity_interval
from analysis.results.tables.rows import runs_text
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.basis import figures_by_run, is_headline, spread
from analysis.site.facts.inputs import MeasuredRow
from analysis.study import Case, Variant, parse_case
from analysis.study.access import access_of

if TYPE_CHECKING:
    from analysis.site.facts.study_facts import StudyFacts

CASE_PREFIX: Final = "case_"
"""Prefix of the columns with keys of the case."""
NOT_MEASURED: Final = "not measured"
COLUMNS: Final = [
    *("machine", "variant", "title", "role", "state", "case", "payload_bytes", "metric", "clock"),
    *("is_default", "seconds", "seconds_low", "seconds_high", "rate", "rate_low", "rate_high"),
    *("share", "short", "interval", "runs", "hosts", "by_run", "note", "href"),
]

Point = dict[str, Any]


def points_table(facts: StudyFacts) -> pd.DataFrame:
    """Figures to draw, and missing ones, with COLUMNS and a column `case_<key>` per case key.

    `state` is `measured`, `stale`, `skipped`, `failed`, `not measured` or `published`. `seconds*`
    are in s, `rate*` in GB/s; `share` is relative to the fastest ceiling's rate. `is_default` is 1
    if `metric` is the one by which the variant is compared. `short` and `interval` are formatted.
    """
    keys = [f"{CASE_PREFIX}{key}" for key in facts.study.case_keys]
    table = pd.DataFrame([*_of_variants(facts), *_published(facts)], columns=[*COLUMNS, *keys])
    words = ["interval", "by_run", "note"]
    return table.assign(**table[words].astype("object").fillna(""))


def _of_variants(facts: StudyFacts) -> Iterator[Point]:
    """One point per measured time, else one with the reason for its absence."""
    study, measured = facts.study, {key[:3] for key in facts.measured}
    place = ["machine", "variant", "case"]
    absent = facts.skipped.drop_duplicates(place, keep="last").set_index(place)
    reasons = absent[["status", "reason"]].to_dict("index")
    for machine, variant in product(facts.machines, study.subjects):
        preferred = study.metrics_for(variant)
        for case in variant.cases:
            key = machine, variant.name, case.id
            found = ((name, facts.find(*key, name)) for name in study.time_metrics)
            times = {name: row for name, row in found if row is not None}
            default = next((name for name in times if name in preferred), "")
            for metric, row in times.items():
                yield {
                    **_place(facts, machine, variant, case, metric),
                    **_measured(facts, variant, case, row),
                    "is_default": int(metric == default),
                }
            skipped = reasons.get(key)
            # Where other metrics than times were measured, no point is missing; and few machines
            # measure the full grid.
            if key not in measured and (skipped or case.grid != "full"):
                state = skipped["status"] if skipped else NOT_MEASURED
                point = _place(facts, machine, variant, case, preferred[0])
                note = skipped["reason"] if skipped else ""
                yield {**point, "state": state, "short": state, "note": note, "is_default": 1}


def _published(facts: StudyFacts) -> Iterator[Point]:
    """Points of the published figures, repeated for every machine."""
    for row, machine in product(facts.printed, facts.machines):
        case = Case(parse_case(row.case), row.payload_bytes, "default")
        yield {
            **_place(facts, machine, facts.study.variant(row.variant), case, row.metric),
            **_values(facts, case, row.seconds, math.nan, math.nan),
            "state": "published",
            "is_default": 1,
            "note": f"{row.printed} {row.unit_printed} in {row.source}",
        }


def _place(facts: StudyFacts, machine: str, variant: Variant, case: Case, metric: str) -> Point:
    """Columns that identify a figure."""
    return {
        "machine": machine,
        "variant": variant.name,
        "title": variant.title,
        "role": variant.role,
        "case": case.id,
        "payload_bytes": case.payload_bytes,
        "metric": metric,
        "clock": facts.study.metrics[metric].label,
        "href": samples_address(machine, facts.study.name, variant.name, case.id, metric),
        **{f"{CASE_PREFIX}{key}": value for key, value in case.values.items()},
    }


def _measured(facts: StudyFacts, variant: Variant, case: Case, row: MeasuredRow) -> Point:
    """Columns of a measured figure. Its runs are in place of an interval that they do not allow."""
    low, note = shortest_time(facts, case, row)
    limit = facts.limit_share(row.machine, variant, case, row.metric)
    point = _values(facts, case, row.median, low, row.ci_high) | {
        "state": "stale" if row.stale else "measured",
        "share": limit.share if limit else math.nan,
        "runs": row.runs,
        "hosts": row.hosts,
        "by_run": row.by_run if row.runs > 1 else "",
        "note": note,
    }
    if not is_headline(row):
        point |= {"interval": spread(row, "", lambda time: _short(facts, case, time)), "note": ""}
    if point["by_run"] and _is_rate(facts, case):
        rates = (case.payload_bytes / time / 1e9 for time in figures_by_run(row))
        point["by_run"] = runs_text(rates)
    return point


def shortest_time(facts: StudyFacts, case: Case, row: MeasuredRow) -> tuple[float, str]:
    """The lower end of a time's interval, and a note where that was raised: no rate reaches beyond
    that of the ceiling or link, unless the figure itself does. NaN without an interval."""
    variant, chip = facts.study.variant(row.variant), facts.chips.get(row.machine)
    limit = facts.limit_share(row.machine, variant, case, row.metric)
    access = access_of(variant, case)
    bounds = [(row.median * limit.share, "ceiling")] if limit else []
    # The link bounds what moves one range, and every step of a study whose limit is such a mover.
    if chip and access and access.reads in ("contiguous", "copy_engine"):
        bounds.append((access.payload_bytes / chip.parameters.link_rate, "link"))
    if rate := facts.limit_rates.get(row.machine):
        bounds.append((case.payload_bytes / rate, "link"))
    least, bound = max(bounds, default=(0.0, ""))
    if math.isnan(row.ci_low) or row.ci_low >= least:
        return row.ci_low, ""
    end = f"the {bound}'s rate"
    if row.median < least:
        return max(row.ci_low, row.median), f"interval ends at the figure, which exceeds {end}"
    return least, f"interval ends at {end}"


def _is_rate(facts: StudyFacts, case: Case) -> bool:
    return facts.are_rates and case.payload_bytes > 0


def _short(facts: StudyFacts, case: Case, seconds: float) -> str:
    """The rate or time for the mark."""
    if _is_rate(facts, case):
        return digits(case.payload_bytes / seconds / 1e9)
    return quantity(seconds, "s")


def _values(facts: StudyFacts, case: Case, seconds: float, low: float, high: float) -> Point:
    """Times in s and rates in GB/s, and their formatted text for the mark."""
    # The longest time is the lowest rate.
    rates = [case.payload_bytes / time / 1e9 for time in (seconds, high, low)]
    values: Point = {"seconds": seconds, "seconds_low": low, "seconds_high": high}
    if case.payload_bytes:
        values |= dict(zip(("rate", "rate_low", "rate_high"), rates, strict=True))
    interval = quantity_interval(seconds, low, high, "s")
    return values | {
        "short": _short(facts, case, seconds),
        "interval": digits_interval(rates[1], rates[2]) if _is_rate(facts, case) else interval,
    }
