"""Tables that check the method itself, over all studies: false alarms, and left-out runs."""

from __future__ import annotations

from typing import Final

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.quantities import percent, ratio

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


TABLES: Final = {"agreement": agreement, "repeatability": repeatability}
