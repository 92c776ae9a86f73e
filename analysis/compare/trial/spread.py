"""How far unchanged kernels move from one process to the next, against what one process shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.compare.judge import run_errors
from analysis.compare.nvbench import read_files


@dataclass(frozen=True)
class Spread:
    """A row of the CSV: NVBench files of one host, one a process. `between` is the spread of a
    row's time over the processes and `within` its error as one process shows it, both relative:
    the medians over all rows, and those of the row with the largest quotient, `moved`."""

    files: str
    processes: int
    rows: int
    between: float
    within: float
    moved: str
    moved_between: float
    moved_within: float


def spread_of_files(files: str, paths: Sequence[Path]) -> Spread:
    """The spread of the rows that all `paths`, at least two, have."""
    sides = [read_files("", [path]) for path in paths]
    rows = sorted(set.intersection(*(set(side.runs) for side in sides)))
    times = np.array([[side.runs[row][0].seconds for row in rows] for side in sides])
    between = np.log(times).std(axis=0, ddof=1)
    within = run_errors([([side.runs[row][0] for side in sides], []) for row in rows])
    worst = int(np.argmax(between / within))
    return Spread(
        files,
        len(paths),
        len(rows),
        *(float(np.median(between)), float(np.median(within))),
        " ".join(rows[worst]),
        *(float(between[worst]), float(within[worst])),
    )
