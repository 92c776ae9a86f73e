"""Tables that check the method itself, over all studies: false alarms, left-out runs, and how long
measuring takes."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import pandas as pd

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.quantities import percent, quantity, ratio

NOT_MEASURED: Final = "No machine has been measured often enough yet."
SHARES: Final = {
    "ratios inside": ("ratios_inside", "ratios"),
    "contradicted": ("contradicted", "decided"),
    "false alarms": ("repeats_different", "repeats"),
}


def agreement(facts: StudyFacts) -> PageTable:
    """False alarms: how often two entries of one program came out as different within a run, by
    machine and study."""
    columns = ["machine", "study", "within a run", "false alarms", "range of ratios"]
    rows = []
    for (machine, study), repeats in facts.inputs.tables["repeats"].groupby(["machine", "study"]):
        is_alarm = repeats["verdict"].isin(["faster", "slower"])
        alarms = f"{is_alarm.sum()} ({percent(float(is_alarm.mean()))})"
        ends = f"{ratio(repeats['ratio'].min())} to {ratio(repeats['ratio'].max())}"
        rows.append([facts.inputs.called(str(machine)), study, len(repeats), alarms, ends])
    return PageTable(columns, rows, NOT_MEASURED, columns[2:])


def repeatability(facts: StudyFacts) -> PageTable:
    """How well the other runs of each machine predict each of its runs."""
    columns = ["machine", "study", "runs", "hosts", "times inside", "half-width", *SHARES]
    rows = [
        [
            *(facts.inputs.called(row["machine"]), row["study"], row["runs"], row["hosts"]),
            *(_of(row["times_inside"], row["times"]), percent(row["half_width"])),
            *(_of(row[count], row[total]) for count, total in SHARES.values()),
        ]
        for row in facts.inputs.tables["repeatability"].to_dict("records")
    ]
    return PageTable(columns, rows, NOT_MEASURED, columns[2:])


def _of(count: int, total: int) -> str:
    return f"{count} of {total}" if total else "none to compare"


def measuring(facts: StudyFacts) -> PageTable:
    """The budget of each study, and the duration of each machine's newest default run."""
    seconds: dict[str, dict[str, float]] = {}
    for run in facts.inputs.runs:
        if run.grid == "default" and run.rounds and not run.asked:
            end, begin = (datetime.fromisoformat(time) for time in (run.end, run.start))
            of_machine = seconds.setdefault(facts.inputs.called(run.machine), {})
            of_machine[run.study] = (end - begin).total_seconds()
    budgets = {one.name: one.budget_s for one in facts.inputs.studies.values()}
    table = pd.DataFrame({"budget": budgets, **dict(sorted(seconds.items()))})
    table = table.dropna(how="all", subset=[*seconds])
    table = table.sort_values(sorted(seconds)[:1], ascending=False, kind="stable")
    if len(table):
        table.loc["all"] = table.sum()
    rows = [[study, *(quantity(one, "s") for one in times)] for study, *times in table.itertuples()]
    return PageTable(["study", *table.columns], rows, NOT_MEASURED, list(table.columns))


TABLES: Final = {"agreement": agreement, "repeatability": repeatability, "measuring": measuring}
