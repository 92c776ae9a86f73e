"""Tables that check the method itself, over all studies: false alarms, left-out runs, and how long
measuring takes."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final

import pandas as pd

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.quantities import percent, quantity, ratio

NOT_MEASURED: Final = "No machine has been measured often enough yet."


def agreement(facts: StudyFacts) -> PageTable:
    """False alarms: how often two entries of one program came out as different, within a run and
    between runs, by machine and study."""
    columns = ["machine", "study", "within a run", "false alarms", "range of ratios"]
    columns += ["between runs", "false alarms between"]
    rows = []
    for (machine, study), repeats in facts.inputs.tables["repeats"].groupby(["machine", "study"]):
        between = repeats["between_verdict"][repeats["between_verdict"] != ""]
        least, most = (ratio(float(repeats["ratio"].agg(end))) for end in ("min", "max"))
        within = [str(len(repeats)), _alarms(repeats["verdict"]), f"{least} to {most}"]
        number = str(len(between)) if len(between) else ""
        called = facts.inputs.called(str(machine))
        rows.append([called, str(study), *within, number, _alarms(between)])
    return PageTable(columns, rows, NOT_MEASURED, columns[2:])


def _alarms(verdicts: pd.Series[str]) -> str:
    """`3 (1.2 %)`; empty where nothing was compared."""
    if verdicts.empty:
        return ""
    is_different = verdicts.isin(["faster", "slower"])
    return f"{int(is_different.sum())} ({percent(float(is_different.mean()))})"


def repeatability(facts: StudyFacts) -> PageTable:
    """How well the other runs of each machine predict each of its runs."""
    shares = {
        "ratios inside": ("ratios_inside", "ratios"),
        "contradicted": ("contradicted", "decided"),
        "false alarms": ("repeats_different", "repeats"),
    }
    columns = ["machine", "study", "runs", "hosts", "times inside", "half-width", *shares]
    rows = []
    for row in facts.inputs.tables["repeatability"].to_dict("records"):
        where = [facts.inputs.called(row["machine"]), row["study"]]
        times = [_of(row["times_inside"], row["times"]), percent(row["half_width"])]
        others = [_of(row[count], row[total]) for count, total in shares.values()]
        rows.append([*where, str(row["runs"]), str(row["hosts"]), *times, *others])
    return PageTable(columns, rows, NOT_MEASURED, columns[2:])


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else ""


def measuring(facts: StudyFacts) -> PageTable:
    """The budget of each study, and the duration of each machine's newest default run."""
    seconds: dict[str, dict[str, float]] = {}
    for run in facts.inputs.runs:
        if run.grid == "default" and run.rounds and not run.asked:
            end, begin = (datetime.fromisoformat(time) for time in (run.end, run.start))
            of_study = seconds.setdefault(run.study, {})
            of_study[facts.inputs.called(run.machine)] = (end - begin).total_seconds()
    machines = sorted({machine for of_study in seconds.values() for machine in of_study})
    measured = [one for one in facts.inputs.studies.values() if one.name in seconds]
    measured.sort(key=lambda one: -seconds[one.name].get(machines[0], 0.0))
    times = {one.name: {"budget": float(one.budget_s), **seconds[one.name]} for one in measured}
    named = ("budget", *machines)
    totals = {one: sum(of_study.get(one, 0.0) for of_study in times.values()) for one in named}
    times |= {"all": totals} if times else {}
    rows = [
        [study, *(quantity(of_study.get(one, math.nan), "s") for one in named)]
        for study, of_study in times.items()
    ]
    return PageTable(["study", *named], rows, NOT_MEASURED, named)


TABLES: Final = {
    "agreement": agreement,
    "repeatability": repeatability,
    "measuring": measuring,
}
