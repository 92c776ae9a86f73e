"""Raw samples on disk: one CSV per run and study, one row per variant, case and round."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
from pydantic import Field, PlainValidator

from analysis.base.errors import FieldError
from analysis.base.keys import UtcTime
from analysis.base.records import records_text
from analysis.results.store import keys

CSV_LIMIT_BYTES: Final = 4 * 2**20
"""Of every CSV file of results."""
MACHINE_LIMIT_SAMPLES: Final = 2**20
"""Of all runs on a machine: a sample takes a hundred times as much memory as in its file."""
SAMPLE_TYPES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("study", "variant", "case", "metric", "unit"), str),
    "value": float,
    "run": str,
    **dict.fromkeys(("round", "sample", "verified"), int),
    **dict.fromkeys(("status", "reason", "throttle"), str),
    "sm_mhz": float,
    "started_at": str,
}
"""Columns of a table with a row per sample, and their types."""

NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
_NUMBERS: Final = re.compile(f"{NUMBER.pattern}(?: {NUMBER.pattern})*")

Metric = tuple[str, str]
"""Name and unit."""
Values = npt.NDArray[np.float64]


def _values(cells: Mapping[Metric, str]) -> Mapping[Metric, Values]:
    """The samples in the cells of metrics that have any."""
    found = {}
    for (name, unit), text in cells.items():
        largest = keys.LONGEST_S if unit == "s" else keys.LARGEST
        values = [*map(float, text.split(" "))] if _NUMBERS.fullmatch(text) else []
        if values and all(value == 0 or keys.SMALLEST <= value <= largest for value in values):
            found[name, unit] = np.array(values)
        elif text:
            limits = f"0 or numbers from {keys.SMALLEST:g} to {largest:g} {unit}"
            raise FieldError(name, limits, text[:200])
    return found


@dataclass(frozen=True)
class Row:
    """A variant and case in one round; `values` are its samples in SI units by metric. A case that
    was skipped or has failed has a reason instead."""

    variant: keys.Name
    case: keys.CaseId
    round: keys.Few
    values: Annotated[Mapping[Metric, Sequence[float] | Values], PlainValidator(_values)]
    verified: Annotated[int, Field(ge=0, le=1)]
    status: Annotated[str, Field(pattern="^(ok|skipped|failed)$")]
    reason: keys.Text
    throttle: keys.Reasons
    sm_mhz: keys.Megahertz | None
    started_at: UtcTime

    def check(self) -> None:
        """FieldError unless it has either values or a reason."""
        if not bool(self.values) == (self.status == "ok") == (not self.reason):
            expected = "ok with values, or another with a reason only"
            raise FieldError("status", expected, (self.status, self.reason))

    @property
    def cell(self) -> tuple[str, str]:
        return self.variant, self.case

    @property
    def key(self) -> tuple[str, str, int]:
        return self.variant, self.case, self.round


def to_text(rows: Iterable[Row]) -> str:
    """The file of these rows. Its numbers are finer than any clock."""
    return records_text(Row, rows, ".7g")
