"""The runs that a figure is based on: whether they allow an interval and a headline, and in words.

A figure from fewer than MIN_RUNS runs or MIN_HOSTS hosts has no interval and is no headline. Its
runs are shown instead.
"""

from collections.abc import Callable
from typing import Final, Protocol

import pandas as pd

from analysis.base.quantities import INTERVAL, runs_phrase
from analysis.base.statistics import MIN_RUNS
from analysis.results.tables.rows import RUN_SEPARATOR

MIN_HOSTS: Final = 2
"""Minimum number of hosts for an interval that is also for other hosts."""
MAX_LISTED_RUNS: Final = 5
"""Maximum number of runs whose figures are listed; of more, the range is given."""
WIDE: Final = 4
"""Factor between the ends of an interval from which on a figure of three digits would mislead."""
SPREAD: Final = f"{INTERVAL} (or single runs)"
"""Title of the texts by `spread`."""


class Based(Protocol):
    """A row whose figure is based on runs; `by_run` is empty for a profile or a printed figure."""

    @property
    def by_run(self) -> str: ...
    @property
    def hosts(self) -> int: ...


def figures_by_run(row: Based) -> list[float]:
    """The figure of each run, oldest first."""
    return [float(figure) for figure in row.by_run.split(RUN_SEPARATOR)] if row.by_run else []


def is_enough(runs: int, hosts: int) -> bool:
    """Whether a figure of this number of runs and hosts may be a headline."""
    return runs >= MIN_RUNS and hosts >= MIN_HOSTS


def is_headline(row: Based) -> bool:
    """Whether the figure may be a headline. Profiles and printed figures need no runs."""
    return not row.by_run or is_enough(len(figures_by_run(row)), row.hosts)


def without_unsupported_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """Rows by Based, without the intervals `ci_low` to `ci_high` that their runs do not allow."""
    runs = table["by_run"].str.count(rf"\{RUN_SEPARATOR}") + 1
    is_allowed = (table["by_run"] == "") | (runs >= MIN_RUNS) & (table["hosts"] >= MIN_HOSTS)
    return table.assign(**{end: table[end].where(is_allowed) for end in ("ci_low", "ci_high")})


def in_few(runs: int, hosts: int) -> str:
    """`in 1 run on 1 host`, if that is too few for a headline; else empty."""
    if is_enough(runs, hosts):
        return ""
    return f"in {runs} run{'s' * (runs > 1)} on {hosts} host{'s' * (hosts > 1)}"


def basis_phrase(row: Based) -> str:
    """`5 runs, 4 hosts`; empty for a figure without runs."""
    return runs_phrase(len(figures_by_run(row)), row.hosts) if row.by_run else ""


def spread(row: Based, interval: str, write: Callable[[float], str]) -> str:
    """The interval; without one, the figures of the runs: `runs: 1.23×, 1.43×`."""
    figures = figures_by_run(row)
    if interval or len(figures) < 2 or (is_headline(row) and min(figures) == max(figures)):
        return interval
    if len(figures) > MAX_LISTED_RUNS:
        return f"runs: {write(min(figures))} to {write(max(figures))}"
    return f"runs: {', '.join(map(write, figures))}"
