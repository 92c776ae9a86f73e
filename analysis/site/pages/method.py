"""What checks the method itself: false alarms, left-out runs, how long measuring takes; and the
program tools/reach.cu beside the study `translation`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

import pandas as pd
from markupsafe import Markup

from analysis.base import statistics
from analysis.base.quantities import (
    digits,
    digits_interval,
    percent,
    quantity,
    ratio,
    signed_percent,
    whole,
)
from analysis.base.statistics import estimate
from analysis.results.tables.rows import RepeatabilityRow, rows_of
from analysis.site.facts.probe import agreements
from analysis.site.pages.html import table
from analysis.site.pages.page import Page, macro


@macro()
def agreement(page: Page) -> Markup:
    """False alarms: how often two entries of one program came out as different, within a run and
    between runs, by machine and study."""
    rows = []
    for (machine, study), repeats in page.inputs.tables["repeats"].groupby(["machine", "study"]):
        between = repeats["between_verdict"][repeats["between_verdict"] != ""]
        rows.append(
            {
                "machine": page.inputs.called(str(machine)),
                "study": str(study),
                "within a run": str(len(repeats)),
                "false alarms": _alarms(repeats["verdict"]),
                "range of ratios": " to ".join(
                    ratio(float(repeats["ratio"].agg(end))) for end in ("min", "max")
                ),
                "between runs": str(len(between)) if len(between) else "",
                "false alarms between": _alarms(between),
            }
        )
    return table(rows)


def _alarms(verdicts: pd.Series[str]) -> str:
    """`3 (1.2 %)`; empty where nothing was compared."""
    if verdicts.empty:
        return ""
    is_different = verdicts.isin(["faster", "slower"])
    return f"{int(is_different.sum())} ({percent(float(is_different.mean()))})"


@macro()
def repeatability(page: Page) -> Markup:
    """How well the other runs of each machine predict each of its runs."""
    return table(
        {
            "machine": page.inputs.called(row.machine),
            "study": row.study,
            "runs": str(row.runs),
            "hosts": str(row.hosts),
            "times inside": _of(row.times_inside, row.times),
            "half-width": percent(row.half_width),
            "ratios inside": _of(row.ratios_inside, row.ratios),
            "contradicted": _of(row.contradicted, row.decided),
            "false alarms": _of(row.repeats_different, row.repeats),
        }
        for row in rows_of(page.inputs.tables["repeatability"], RepeatabilityRow)
    )


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else ""


@macro()
def interval(page: Page, kind: str, *runs: Sequence[float]) -> str:
    """The interval of an example.

    kind: of its values, as analysis/base/statistics.py calls it
    runs: the rounds of each run
    """
    _, low, high = estimate(runs, getattr(statistics, kind))
    return digits(low) if low == high else digits_interval(low, high)


@macro()
def measuring(page: Page) -> Markup:
    """The budget of each study, and the duration of each machine's newest default run."""
    seconds: dict[str, dict[str, float]] = {}
    for run in page.inputs.runs:
        if run.grid == "default" and run.rounds and not run.asked:
            end, begin = (datetime.fromisoformat(time) for time in (run.end, run.start))
            of_study = seconds.setdefault(run.study, {})
            of_study[page.inputs.called(run.machine)] = (end - begin).total_seconds()
    budgets = {name: float(study.budget_s) for name, study in page.inputs.studies.items()}
    machines = sorted({machine for of_study in seconds.values() for machine in of_study})
    measured = [name for name in budgets if name in seconds]
    measured.sort(key=lambda name: -seconds[name].get(machines[0], 0.0))
    columns = {name: {"budget": budgets[name], **seconds[name]} for name in measured}
    names = ("budget", *machines)
    totals = {one: sum(of_study.get(one, 0.0) for of_study in columns.values()) for one in names}
    columns |= {"all": totals} if columns else {}
    return table(
        {"study": name, **{one: quantity(of_study.get(one, math.nan), "s") for one in names}}
        for name, of_study in columns.items()
    )


@macro()
def reach_agreement(page: Page) -> Markup:
    """The figures of tools/reach.cu beside those of the study, on every machine that has both."""
    return table(
        {
            "machine": page.inputs.called(one.machine),
            "pool": f"{one.pool_bytes / 2**30:g} GiB",
            "figure": one.name,
            "the study": _quantity(one.by_study, one.unit),
            "reach.cu": _quantity(one.by_probe, one.unit),
            "difference": signed_percent(one.by_probe / one.by_study - 1),
            "note": "" if one.is_current else "by an earlier version of the file",
        }
        for one in agreements(page.inputs)
    )


def _quantity(value: float, unit: str) -> str:
    if unit == "1/s":
        return f"{digits(value / 1e6)} million/s"
    return whole(value) if unit == "1" else quantity(value, unit)
