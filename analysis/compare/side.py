"""One side of a comparison: the runs of every row, and rows without a time. Its simplest form is a
table of samples: CSV with a header.

`seconds` is a sample. `run` names its run; without it, all samples are of one run. `side` is there
if one table has both sides. All other columns name the row.
"""

import csv
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.base.errors import FieldError, HotpathError, visible

BLOCKS: Final = 8
"""Consecutive blocks that samples are divided into; their medians show drift within a run."""
MIN_S, MAX_S = 1e-12, 1e9
"""Limits of a time in seconds."""
NAME, SECONDS = "standard input", "seconds"

Row = tuple[str, ...]
"""Names of a row, its case and its time, such as `h2d_gather`, `v3_loads_first`, `bs=1`,
`host_time`. Rows of other clocks or other statistics are other rows."""


@dataclass(frozen=True)
class Run:
    """One run of a row: its time in seconds, and the relative spread within the run, NaN if
    unknown. `id` is equal for one run on both sides."""

    seconds: float
    spread: float = math.nan
    id: str = ""


@dataclass
class Side:
    """`runs` by row; `absent` has the reason for rows without a time, which its rows lack; `notes`
    are of the whole. Parts of rows at the places `optional` only count if a side has several."""

    name: str
    runs: dict[Row, list[Run]] = field(default_factory=dict)
    absent: dict[Row, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    optional: tuple[int, ...] = ()

    def parts(self, place: int) -> set[str]:
        """The parts of all rows at `place`, except empty ones."""
        return {row[place] for row in (*self.runs, *self.absent)} - {""}

    def times(self, names: Row) -> str:
        """Clocks and statistics of the rows with these names, in words."""
        return " and ".join(sorted(time for *others, time in self.runs if (*others,) == names))

    def keep(self, is_kept: Callable[[Row], bool]) -> None:
        """Drop all other rows."""
        self.runs = {row: runs for row, runs in self.runs.items() if is_kept(row)}
        self.absent = {row: why for row, why in self.absent.items() if is_kept(row)}

    def rename(self, place: int, names: Mapping[str, str]) -> None:
        """Replace the parts of all rows at `place` by their `names`, or by an empty one."""

        def renamed(row: Row) -> Row:
            return (*row[:place], names.get(row[place], ""), *row[place + 1 :])

        old, self.runs = self.runs, {}
        for row, of_row in old.items():
            self.runs.setdefault(renamed(row), []).extend(of_row)
        self.absent = {renamed(row): why for row, why in self.absent.items()}


def empty_common_parts(a: Side, b: Side) -> None:
    """Empty the optional parts of rows that both sides have at most one of: then one program or GPU
    is compared with another. Of paths, the shortest ends remain that differ within each side."""
    for place in {*a.optional} & {*b.optional}:
        parts = a.parts(place), b.parts(place)
        names = _shortest_ends(*parts) if max(map(len, parts)) > 1 else {}
        for side in (a, b):
            side.rename(place, names)


def _shortest_ends(*sides: Collection[str]) -> dict[str, str]:
    paths = {path: Path(path).parts for side in sides for path in side}
    for length in range(1, max(map(len, paths.values())) + 1):
        ends = {path: "/".join(parts[-length:]) for path, parts in paths.items()}
        if all(len({ends[path] for path in side}) == len(side) for side in sides):
            break
    return ends


def run_of(samples: Sequence[float] | npt.NDArray[np.floating], id: str = "") -> Run:
    """The run with these samples, in their order, all above 0.

    Its spread is that of the medians of BLOCKS consecutive blocks, which neighbours that resemble
    each other do not narrow; of few samples, their standard deviation.
    """
    blocks = logs = np.log(np.asarray(samples, np.float64))
    if len(logs) >= 2 * BLOCKS:
        blocks = np.array([np.median(block) for block in np.array_split(logs, BLOCKS)])
    spread = float(np.std(blocks, ddof=1)) if len(logs) > 1 else math.nan
    return Run(float(np.exp(np.median(logs))), spread, id)


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
