"""Times in a table of samples: CSV with a header.

`seconds` is a sample. `run` names its run; without it, all samples are of one run. `side` is there
if one table has both sides. All other columns name the row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from contextlib import suppress

from analysis.base.errors import FieldError, HotpathError, visible
from analysis.compare.side import MAX_S, MIN_S, Row, Side, run_of

NAME, SECONDS = "standard input", "seconds"


def read_sides(lines: Iterable[str], count: int) -> list[Side]:
    """The `count` sides of a table, in their order. HotpathError names the line and the column."""
    sides: dict[str, Side] = {}
    samples: dict[tuple[str, Row, str], list[float]] = {}
    reader = csv.DictReader(lines, strict=True)
    try:
        header = list(reader.fieldnames or [])
        if SECONDS not in header or len(set(header)) < len(header):
            raise FieldError(f"{NAME}: header", f"different names, one of them {SECONDS}", header)
        for cells in reader:
            where = f"{NAME}: line {reader.line_num}"
            if None in cells or None in cells.values():
                raise FieldError(where, f"{len(header)} cells", "fewer or more")
            text, side, run = (cells.pop(name, "") for name in (SECONDS, "side", "run"))
            row = (*map(visible, cells.values()), SECONDS)
            samples.setdefault((side, row, run), []).append(_time(f"{where}: {SECONDS}", text))
    except (csv.Error, UnicodeError) as error:
        raise HotpathError(f"{NAME}: expected CSV, got {visible(str(error))}") from error
    for (name, row, run), of_run in samples.items():
        of_side = sides.setdefault(name, Side(visible(name) or NAME))
        of_side.runs.setdefault(row, []).append(run_of(of_run, f"{name}/{run}"))
    if len(sides) != count:
        raise FieldError(f"{NAME}: side", f"{count} side{'s' * (count > 1)}", len(sides))
    return [*sides.values()]


def _time(field: str, text: str) -> float:
    with suppress(ValueError):
        if MIN_S <= (seconds := float(text)) <= MAX_S:
            return seconds
    raise FieldError(field, f"a number from {MIN_S:g} to {MAX_S:g}", text)
