"""Figures of the comparers of benchmark files, from the trial's committed table."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from itertools import groupby
from typing import Final

from analysis import ROOT
from analysis.base.quantities import percent
from analysis.site.pages.html import table
from analysis.site.pages.page import macro

TABLE: Final = ROOT / "analysis" / "compare" / "trial" / "figures.csv"
EXAMPLE: Final = TABLE.with_name("example.txt")
"""Output of the comparer for made-up times. A test compares it with the program."""
AS_DELIVERED: Final = {
    "hotpath": 0.95,
    "nvbench-compare-legacy": 0.0,
    "nvbench-compare-robust": 0.005,
}
"""The setting that each comparer has by default."""
LIMIT: Final = 0.05
"""Tables with a false alarm that are tolerated."""
FOUND: Final = ("found_1", "found_2", "found_5", "found_10")
"""Columns of the shares of slow-downs that were found, in percent."""

Figures = Mapping[str, str]


@macro("comparer_example")
def example() -> str:
    """An example of the comparer's output."""
    return f"```text\n{EXAMPLE.read_text(encoding='utf-8').rstrip()}\n```"


@macro("comparers")
def comparers_table(at: str) -> str:
    """False alarms and power of this comparer and of NVBench's two.

    at: `default`, each with its default setting, or `equal`, each with the least strict setting
    whose false alarms are in at most 5 % of the tables
    """
    columns = ["files", "runs", "comparer", "setting", "pairs of programs", "false alarms"]
    columns += ["tables with one", *(f"+{column.partition('_')[2]} %" for column in FOUND)]
    with TABLE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = []
    for (files, runs, comparer), group in groupby(
        rows, lambda row: (row["files"], row["runs"], row["comparer"])
    ):
        settings = list(group)
        row = _default(settings) if at == "default" else _at_limit(settings)
        if row is None:
            lines.append([files, runs, comparer, "none suffices", *[""] * 7])
            continue
        tables = f"{row['false_tables']} of {row['tables']}"
        setting = f"{float(row['setting']) * 100:g} %"
        counts = [row["rows"], row["false_rows"], tables]
        lines.append(
            [
                files,
                runs,
                comparer,
                setting,
                *counts,
                *(percent(float(row[column])) for column in FOUND),
            ]
        )
    return table(columns, lines, numeric=columns[4:])


def _default(settings: list[dict[str, str]]) -> Figures | None:
    wanted = AS_DELIVERED[settings[0]["comparer"]]
    return next((row for row in settings if float(row["setting"]) == wanted), None)


def _at_limit(settings: list[dict[str, str]]) -> Figures | None:
    """The least strict setting within LIMIT."""
    return next(
        (row for row in settings if int(row["false_tables"]) <= LIMIT * int(row["tables"])), None
    )
