"""Rows of the tables under build/: a class each, with a field for each column in its order.

docs/contract.md has the meaning of every column. Text that is missing is empty, a number that is
missing is NaN. Times are in s, flags are 0 or 1. Snakemake reads the names of tables at each start,
so pandas is imported only where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from analysis.study.claims.verdicts import short

if TYPE_CHECKING:
    import pandas as pd

Row = TypeVar("Row")


@dataclass(frozen=True)
class _OfCase:
    machine: str
    study: str
    variant: str
    case: str


@dataclass(frozen=True)
class _OfMetric(_OfCase):
    metric: str


@dataclass(frozen=True)
class SummaryRow(_OfMetric):
    """A metric of a variant in a case on a machine, over `runs` on `hosts`."""

    unit: str
    median: float
    ci_low: float
    ci_high: float
    q1: float
    q3: float
    n: int
    rounds: int
    verified: int
    throttled: float
    stale: int
    runs: int
    hosts: int
    by_run: str
    apart: int


@dataclass(frozen=True)
class RatioRow:
    """The time of `against` over that of `variant`."""

    machine: str
    study: str
    variant: str
    against: str
    case: str
    metric: str
    ratio: float
    ci_low: float
    ci_high: float
    verdict: str
    runs: int
    hosts: int
    by_run: str
    apart: int


@dataclass(frozen=True)
class RepeatRow(RatioRow):
    """The ratio of two entries that are one program, in one run and between runs."""

    run: str
    between_ratio: float
    between_verdict: str


@dataclass(frozen=True)
class RepeatabilityRow:
    """Each of the `runs` of a study on a machine, compared with the intervals of the others."""

    machine: str
    study: str
    runs: int
    hosts: int
    times: int
    times_inside: int
    half_width: float
    ratios: int
    ratios_inside: int
    decided: int
    contradicted: int
    repeats: int
    repeats_different: int


@dataclass(frozen=True)
class RunRow(_OfCase):
    """The newest run behind a cell of the summary, and the disturbed rounds of all its runs."""

    run: str
    disturbed: int


@dataclass(frozen=True)
class RoundRow(_OfMetric):
    """A time in one round, and the B/s that one core of the host copied around it."""

    run: str
    round: int
    median: float
    core_copies: float


@dataclass(frozen=True)
class SkippedRow(_OfCase):
    """A case that was skipped or failed."""

    status: str
    reason: str
    stale: int


@dataclass(frozen=True)
class _OfClaim:
    study: str
    claim: str
    machine: str


@dataclass(frozen=True)
class _Judged:
    verdict: str
    reason: str
    published: float
    measured: float
    ci_low: float
    ci_high: float
    unit: str
    case: str
    judged: float = math.nan
    judged_low: float = math.nan
    judged_high: float = math.nan
    by_run: str = ""
    hosts: int = 0


@dataclass(frozen=True)
class ClaimRow(_Judged, _OfClaim):
    """A claim and the results of one machine. `measured` is the figure of all runs, `judged` that
    of the runs that the verdict uses."""

    bound: str = ""
    runs: int = 0
    judging: int = 0
    judging_hosts: int = 0
    on_average: str = ""


@dataclass(frozen=True)
class _OfPart(_OfClaim):
    part: int
    comparison: str


@dataclass(frozen=True)
class ClaimPartRow(_Judged, _OfPart):
    """One of the comparisons that make up a claim."""

    def sentence(self, *, with_case: bool) -> str:
        """`fast over slow by rate in n=1: 1.002 (1 to 1.004), not at least 1.05`."""
        where = f" in {self.case}" if with_case and self.case else ""
        shown = _figure(self.measured, self.ci_low, self.ci_high)
        judged = _figure(self.judged, self.judged_low, self.judged_high)
        of_all = "" if shown in ("", judged) else f"{shown}; in the runs that the verdict uses: "
        return f"{self.comparison}{where}: {of_all}{', '.join(filter(None, [judged, self.reason]))}"


def _figure(value: float, low: float, high: float) -> str:
    """`1.002 (1 to 1.004)`; no interval where that has no width, empty without a figure."""
    if math.isnan(value):
        return ""
    return f"{short(value)} ({short(low)} to {short(high)})" if low < high else short(value)


@dataclass(frozen=True)
class ModelRow(_OfMetric):
    """A time by the link model beside the measured one."""

    predicted: float
    measured: float
    residual: float
    binding: str
    margin: float
    held_back: str


@dataclass(frozen=True)
class ParameterRow:
    """A parameter of the link model on one machine, fitted to `cases` of `runs` runs."""

    machine: str
    parameter: str
    value: float
    unit: str
    ci_low: float
    ci_high: float
    cases: int
    runs: int


@dataclass(frozen=True)
class CounterRow(_OfMetric):
    """A counter of the hardware, predicted and counted, in `unit`."""

    unit: str
    predicted: float
    counted: float
    residual: float


RUN_SEPARATOR: Final = "|"
DTYPES: Final = {"str": "str", "float": "float64", "int": "int64"}
"""Types of columns, by the annotation of a row's field."""
TABLES: Final[Mapping[str, type[Any]]] = {
    "summary": SummaryRow,
    "ratios": RatioRow,
    "repeats": RepeatRow,
    "repeatability": RepeatabilityRow,
    "runs": RunRow,
    "rounds": RoundRow,
    "skipped": SkippedRow,
    "claims": ClaimRow,
    "claim_parts": ClaimPartRow,
    "model": ModelRow,
    "model_parameters": ParameterRow,
    "model_counters": CounterRow,
}
"""The rows of every table by its name; the file is `<name>.csv`. `of_study` makes them."""
OFFERED: Final = (
    *("summary", "ratios", "skipped", "claims", "claim_parts", "model", "model_parameters"),
)
"""Tables that the site has for download."""


def runs_text(by_run: Iterable[float]) -> str:
    """Figures of runs as the tables have them."""
    return RUN_SEPARATOR.join(f"{value:.7g}" for value in by_run)


def columns(row: type[Any]) -> list[str]:
    """The columns of the table with such rows, as pandas takes them."""
    return [field.name for field in fields(row)]


def read_table(path: Path, row: type[Any]) -> pd.DataFrame:
    """The table with such rows; a missing or empty file has no rows."""
    import pandas as pd

    types = {field.name: DTYPES[str(field.type)] for field in fields(row)}
    if not path.exists() or not path.stat().st_size:
        return pd.DataFrame(columns=[*types]).astype(types)
    gaps = {name: [""] for name, dtype in types.items() if dtype == "float64"}
    return pd.read_csv(path, dtype=types, na_values=gaps, keep_default_na=False)[[*types]]


def rows_of(table: pd.DataFrame, row: type[Row]) -> list[Row]:
    """The rows of `table`, which has at least the columns of such rows."""
    return [row(*values) for values in table[columns(row)].itertuples(index=False, name=None)]
