"""Figures of the comparers of benchmark files, from the trial's committed table."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from analysis import ROOT
from analysis.base.quantities import listing, percent, times_phrase
from analysis.site.pages.html import table
from analysis.site.pages.page import macro

TABLE: Final = ROOT / "analysis" / "compare" / "trial" / "figures.csv"
SPREAD: Final = TABLE.with_name("spread.csv")
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
    columns += ["tables with one", *(f"+{_column_share(column)}" for column in FOUND)]
    lines = []
    for (files, runs, comparer), settings in _settings():
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


def _default(settings: Sequence[Figures]) -> Figures | None:
    wanted = AS_DELIVERED[settings[0]["comparer"]]
    return next((row for row in settings if float(row["setting"]) == wanted), None)


def _at_limit(settings: Sequence[Figures]) -> Figures | None:
    """The least strict setting within LIMIT."""
    return next((row for row in settings if _keeps_rate(row)), None)


@macro("comparers_verdict")
def verdict() -> str:
    """In words: whether this comparer keeps its rate, and how often it finds no less than both
    scripts at equal false alarms, with one run a side."""
    found = {key: settings for key, settings in _settings() if key[1] == "1"}
    files = list(dict.fromkeys(name for name, _, _ in found))
    by_default = {name: _default(found[name, "1", "hotpath"]) for name in files}
    over = [name for name, row in by_default.items() if row and not _keeps_rate(row)]
    alarms = [
        sum(int(row[column]) for row in by_default.values() if row)
        for column in ("false_tables", "tables")
    ]
    rate = f"By default, {alarms[0]} of {alarms[1]} tables of unchanged programs have a false alarm"
    rate += (
        f"; the rate is exceeded for {listing(over)}." if over else ", and no set more than 5 %."
    )
    counts = [f"{_column_share(c)} in {_no_less(found, files, c)}" for c in FOUND[1:]]
    return (
        f"{rate} With one run a side and at equal false alarms, this comparer finds no fewer "
        f"slow-downs than either script: of {', of '.join(counts)} of the {len(files)} sets of "
        "files."
    )


@macro("comparers_spread")
def spread_table() -> str:
    """How far rows of unchanged kernels move between processes, against what each one shows."""
    lines = []
    for row in _records(SPREAD):
        between, within, moved, shown = (
            float(row[column]) for column in ("between", "within", "moved_between", "moved_within")
        )
        lines.append(
            [
                *(row["files"], row["processes"], percent(between), percent(within)),
                *(row["moved"], percent(moved), times_phrase(moved / shown)),
            ]
        )
    columns = ["files", "processes", "median spread between processes"]
    columns += ["median error that one process shows", "row that moved most", "its spread"]
    columns += ["over its error"]
    return table(columns, lines, numeric=[*columns[1:4], *columns[5:]])


def _no_less(
    found: Mapping[tuple[str, str, str], Sequence[Figures]], files: list[str], c: str
) -> int:
    """Number of sets in which this comparer's share in column `c` is not below a script's."""
    count = 0
    for name in files:
        rows = {key[2]: _at_limit(rows) for key, rows in found.items() if key[0] == name}
        shares = {comparer: float(row[c]) if row else 0.0 for comparer, row in rows.items()}
        count += shares["hotpath"] >= max(shares.values())
    return count


def _column_share(column: str) -> str:
    return f"{column.partition('_')[2]} %"


def _keeps_rate(row: Figures) -> bool:
    return int(row["false_tables"]) <= LIMIT * int(row["tables"])


def _settings() -> Iterator[tuple[tuple[str, str, str], list[dict[str, str]]]]:
    """The settings of a comparer, from the least strict on, by files and runs a side."""
    for key, group in groupby(
        _records(TABLE), lambda row: (row["files"], row["runs"], row["comparer"])
    ):
        yield key, list(group)


def _records(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
