"""What checks the method itself: false alarms, left-out runs, how long measuring takes; and the
program tools/reach.cu beside the study `translation`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final

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
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.probe import OUTPUTS, SOURCE, agreements, is_current
from analysis.site.facts.rows import RepeatabilityRow, rows_of
from analysis.site.pages.html import fenced, table
from analysis.site.pages.page import macro

DIFFERENT: Final = ("faster", "slower")


@macro("agreement")
def agreement(inputs: Inputs) -> Markup:
    """False alarms: how often two entries of one program came out as different, within a run and
    between runs, by machine and study."""
    rows = []
    for (machine, study), repeats in inputs.tables["repeats"].groupby(["machine", "study"]):
        between = repeats["between_verdict"][repeats["between_verdict"] != ""]
        least, most = (float(repeats["ratio"].agg(end)) for end in ("min", "max"))
        rows.append(
            {
                "machine": inputs.called(str(machine)),
                "study": str(study),
                "within a run": str(len(repeats)),
                "false alarms": _alarms(repeats["verdict"]),
                "range of ratios": f"{ratio(least)} to {ratio(most)}",
                "between runs": str(len(between)) if len(between) else "",
                "false alarms between": _alarms(between),
            }
        )
    return table(rows)


def _alarms(verdicts: pd.Series[str]) -> str:
    """`3 (1.2 %)`; empty where nothing was compared."""
    if verdicts.empty:
        return ""
    is_different = verdicts.isin(DIFFERENT)
    return f"{int(is_different.sum())} ({percent(float(is_different.mean()))})"


@macro("repeatability")
def repeatability(inputs: Inputs) -> Markup:
    """How well the other runs of each machine predict each of its runs."""
    return table(
        {
            "machine": inputs.called(row.machine),
            "study": row.study,
            "runs": str(row.runs),
            "hosts": str(row.hosts),
            "times inside": _of(row.times_inside, row.times),
            "half-width": percent(row.half_width),
            "ratios inside": _of(row.ratios_inside, row.ratios),
            "contradicted": _of(row.contradicted, row.decided),
            "false alarms": _of(row.repeats_different, row.repeats),
        }
        for row in rows_of(inputs.tables["repeatability"], RepeatabilityRow)
    )


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else ""


@macro("interval")
def interval(kind: str, *runs: Sequence[float]) -> str:
    """The interval of an example.

    kind: of its values, as analysis/base/statistics.py calls it
    runs: the rounds of each run
    """
    _, low, high = estimate(runs, getattr(statistics, kind))
    return digits(low) if low == high else digits_interval(low, high)


@macro("measuring")
def measuring(inputs: Inputs) -> Markup:
    """The budget of each study, and the duration of each machine's newest default run."""
    seconds = {
        (inputs.called(run.machine), run.study): _moment(run.end) - _moment(run.start)
        for run in inputs.runs
        if run.grid == "default" and run.rounds and not run.asked
    }
    machines = sorted({machine for machine, _ in seconds})
    rows = [
        {
            "study": name,
            "budget": study.budget_s,
            **{machine: seconds.get((machine, name), math.nan) for machine in machines},
        }
        for name, study in inputs.studies.items()
        if any((machine, name) in seconds for machine in machines)
    ]
    frame = pd.DataFrame(rows)
    if frame.empty:
        return table([])
    frame = frame.sort_values(machines[0], ascending=False)
    frame.loc[len(frame)] = {"study": "all", **frame.drop(columns="study").sum()}
    written = frame.set_index("study").map(lambda value: quantity(value, "s")).reset_index()
    return table(
        {str(key): value for key, value in row.items()} for row in written.to_dict("records")
    )


def _moment(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


@macro()
def reach_source() -> str:
    """The source of tools/reach.cu, with a button that copies it."""
    return fenced(SOURCE.read_text(), "cuda")


@macro()
def reach_example() -> str:
    """The output of tools/reach.cu for people, from one of the machines."""
    newest = max(OUTPUTS.glob("*/reach.txt"), key=is_current)
    return fenced(newest.read_text(), "text")


@macro()
def reach_agreement(inputs: Inputs) -> Markup:
    """The figures of tools/reach.cu beside those of the study, on every machine that has both."""
    return table(
        {
            "machine": inputs.called(one.machine),
            "pool": f"{one.pool_bytes / 2**30:g} GiB",
            "figure": one.name,
            "the study": _quantity(one.by_study, one.unit),
            "reach.cu": _quantity(one.by_probe, one.unit),
            "difference": signed_percent(one.difference),
            "note": "" if one.is_current else "by an earlier version of the file",
        }
        for one in agreements(inputs)
    )


def _quantity(value: float, unit: str) -> str:
    if unit == "1/s":
        return f"{digits(value / 1e6)} million/s"
    return whole(value) if unit == "1" else quantity(value, unit)
