"""Tables under build/: the columns of each with their types, and rows as objects.

docs/contract.md has the meaning of every column. Text that is missing is empty, a number that is
missing is NaN. Times are in s, flags are 0 or 1. Snakemake reads the names of tables at each start,
so pandas is imported only where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_type_hints

from analysis.study.claims.verdicts import short

if TYPE_CHECKING:
    import pandas as pd

Row = TypeVar("Row")


@dataclass(frozen=True)
class SummaryRow:
    """A metric of a variant in a case on a machine, over `runs` on `hosts`."""

    machine: str
    study: str
    variant: str
    case: str
    metric: str
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


RUN_SEPARATOR: Final = "|"
_CASE: Final = dict.fromkeys(("machine", "study", "variant", "case"), str)
TABLES: Final[Mapping[str, Mapping[str, type]]] = {
    "summary": get_type_hints(SummaryRow),
    "ratios": get_type_hints(RatioRow),
    "repeats": {**get_type_hints(RatioRow), "run": str},
    "repeatability": {"machine": str, "study": str}
    | dict.fromkeys(("runs", "hosts", "times", "times_inside"), int)
    | {"half_width": float}
    | dict.fromkeys(("ratios", "ratios_inside", "decided", "contradicted"), int)
    | {"repeats": int, "repeats_different": int},
    "runs": {**_CASE, "run": str, "disturbed": int},
    "rounds": dict.fromkeys((*_CASE, "metric", "run"), str)
    | {"round": int, "median": float, "core_copies": float},
    "skipped": {**_CASE, "status": str, "reason": str, "stale": int},
    "claims": get_type_hints(ClaimRow),
    "claim_parts": get_type_hints(ClaimPartRow),
    "model": dict.fromkeys((*_CASE, "metric"), str)
    | dict.fromkeys(("predicted", "measured", "residual"), float)
    | {"binding": str, "margin": float, "held_back": str},
    "model_parameters": get_type_hints(ParameterRow),
}
"""The columns of every table, with their types; the file is `<name>.csv`. `of_study` makes it."""
OFFERED: Final = (
    *("summary", "ratios", "skipped", "claims", "claim_parts", "model", "model_parameters"),
)
"""Tables that the site has for download."""


def runs_text(by_run: Iterable[float]) -> str:
    """Figures of runs as the tables have them."""
    return RUN_SEPARATOR.join(f"{value:.7g}" for value in by_run)


def table_of(name: str, rows: Iterable[Any] = ()) -> pd.DataFrame:
    """One of TABLES with these rows."""
    import pandas as pd

    return pd.DataFrame(rows, columns=[*TABLES[name]])


def read_table(path: Path, types: Mapping[str, type]) -> pd.DataFrame:
    """The table with columns of these types; a missing or empty file has no rows."""
    import pandas as pd

    if not path.exists() or not path.stat().st_size:
        return pd.DataFrame(columns=[*types]).astype(types)
    gaps = {name: [""] for name, kind in types.items() if kind is float}
    return pd.read_csv(path, dtype=types, na_values=gaps, keep_default_na=False)[[*types]]


def rows_of(table: pd.DataFrame, row: type[Row]) -> list[Row]:
    """The rows of `table`, which has at least the fields of such rows as columns."""
    named = table[[*get_type_hints(row)]]
    return [row(*values) for values in named.itertuples(index=False, name=None)]
