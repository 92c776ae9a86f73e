"""Rows of the tables under build/: their columns, in order, and what is in them.

Text that is missing is empty, a number that is missing is NaN. Times are in s, flags are 0 or 1.
A new table is a class of rows and an entry of TABLES here, a line of `of_study`, and its columns in
docs/contract.md. Snakemake reads the names of tables at each start, so pandas is imported only
where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from analysis.base import records
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
    """A figure: a metric of a variant in a case on a machine, over `runs` on `hosts`. `by_run` are
    the runs' medians, oldest first; `apart` of them lie outside the interval of the others."""

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
    """The time of `against` over that of `variant`; `runs`, `hosts`, `by_run` and `apart` as in
    SummaryRow."""

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
class RepeatabilityRow:
    """Each of the `runs` of a study on a machine, compared with the intervals of the others.

    `half_width` is the median over times of half the interval's width over the time. Counts:
    `times` of runs that were left out, and how many lie inside; `ratios`, and how many lie inside;
    `decided` comparisons (faster or slower by the other runs) and how many the left-out run
    contradicts; `repeats` of one program and how many are called different.
    """

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
class RepeatRow(RatioRow):
    """The ratio of two entries that are one program, in one run.

    `between_ratio` and `between_verdict` hold the time of the one in this run against those of the
    other in all other runs; NaN and empty where there are too few.
    """

    run: str
    between_ratio: float
    between_verdict: str


@dataclass(frozen=True)
class RunRow(_OfCase):
    """The newest `run` that the summary took a variant and case from; `disturbed` is how many of
    all its rounds were."""

    run: str
    disturbed: int


@dataclass(frozen=True)
class RoundRow(_OfMetric):
    """The `median` of a time in one round, and what one core of the host copied around it in B/s,
    before or after, whichever is less."""

    run: str
    round: int
    median: float
    core_copies: float


@dataclass(frozen=True)
class SkippedRow(_OfCase):
    """A case that was `skipped` or `failed`."""

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
    """A verdict and the figures that it is made from; `by_run` and `hosts` are those of
    `measured`."""

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
    """A claim and the results of one machine; figures in `unit`.

    The verdict follows from `judged`, the figure of the runs that the verdict uses, and its
    interval; `measured` is that of all runs. `bound` says whether the threshold was chosen `before`
    or `afterwards`, that is after the runs that the verdict uses; it is empty without such runs.
    `runs` is the number of runs that measured its figures, on `hosts`; `judging` and
    `judging_hosts` count those that recorded the bound; if 0, the verdict uses all. `on_average`
    is the verdict on the means over hosts, if they decide a claim that the figures leave undecided.
    """

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
    """One of the comparisons that make up a claim: `part` is its number in study.yaml, from 1."""

    def sentence(self, *, with_case: bool) -> str:
        """`fast over slow by rate in n=1: 1.002 (1 to 1.004), not at least 1.05`."""
        where = f" in {self.case}" if with_case and self.case else ""
        shown = _figure(self.measured, self.ci_low, self.ci_high)
        judged = _figure(self.judged, self.judged_low, self.judged_high)
        verdict = ", ".join(filter(None, [judged, self.reason]))
        of_all = "" if shown in ("", judged) else f"{shown}; in the runs that the verdict uses: "
        return f"{self.comparison}{where}: {of_all}{verdict}"


def _figure(value: float, low: float, high: float) -> str:
    """`1.002 (1 to 1.004)`; no interval where that has no width, empty without a figure."""
    if math.isnan(value):
        return ""
    has_width = low < high  # NaN has none
    return f"{short(value)} ({short(low)} to {short(high)})" if has_width else short(value)


@dataclass(frozen=True)
class ModelRow(_OfMetric):
    """A time by the link model beside the measured one; `margin` is how many times the next term
    the `binding` one is. `held_back` from the fit is a calibration's case `inside` the fitted range
    or `outside` of it."""

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
    return RUN_SEPARATOR.join(f"{one:.7g}" for one in by_run)


def columns(row: type[Any]) -> list[str]:
    """The columns of the table with such rows, as pandas takes them."""
    return list(records.columns(row))


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
