"""Times in a table of samples: CSV with a header.

`seconds` is a sample. `run` names its run; without it, all samples are of one run. `side` is there
if one table has both sides. All other columns name the row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Final

from analysis.base.errors import FieldError, HotpathError, visible
from analysis.compare.side import MAX_S, MIN_S, Row, Side, run_of

NAME: Final = "standard input"


def read_sides(lines: Iterable[str]) -> dict[str, Side]:
    """The sides of a table in their order; one without a name if it has no column `side`."""
    samples: dict[str, dict[Row, dict[str, list[float]]]] = {}
    reader = csv.DictReader(lines, strict=True)
    try:
        header = list(reader.fieldnames or [])
        if "seconds" not in header or len(set(header)) < len(header):
            raise FieldError(f"{NAME}: header", "different names, one of them seconds", header)
        for cells in reader:
            where = f"{NAME}: line {reader.line_num}"
            if None in cells or None in cells.values():
                raise FieldError(where, f"{len(header)} cells", "fewer or more")
            seconds = _seconds(f"{where}: seconds", cells.pop("seconds"))
            side, run = cells.pop("side", ""), cells.pop("run", "")
            row = (*map(visible, cells.values()), "seconds")
            samples.setdefault(side, {}).setdefault(row, {}).setdefault(run, []).append(seconds)
    except (csv.Error, UnicodeError) as error:
        raise HotpathError(f"{NAME}: expected CSV, got {visible(str(error))}") from error
    return {
        name: Side(
            visible(name) or NAME,
            {
                row: [run_of(of_run, f"{name}/{run}") for run, of_run in runs.items()]
                for row, runs in of_side.items()
            },
        )
        for name, of_side in samples.items()
    }


def _seconds(field: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not MIN_S <= seconds <= MAX_S:
        raise FieldError(field, f"a number from {MIN_S:g} to {MAX_S:g}", text)
    return seconds
