"""Published figures of others, in SI units: results/published/<study>.csv."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.errors import FieldError, require_known
from analysis.records import columns
from analysis.study import Study
from analysis.units import SI


@dataclass(frozen=True)
class PublishedRow:
    """A printed figure and its unit, as printed and as meant. `seconds` and `rate` (GB/s) are the
    same statement: payload over the one gives the other; NaN where it is neither."""

    variant: str
    case: str
    metric: str
    printed: str
    unit_printed: str
    unit_meant: str
    source: str
    note: str
    payload_bytes: int
    seconds: float
    rate: float

    @property
    def is_time(self) -> bool:
        return SI[self.unit_meant][0] == "s"


COLUMNS = list(columns(PublishedRow))
FILE_COLUMNS = COLUMNS[: COLUMNS.index("payload_bytes")]
"""What a file has; the others follow from these."""


def load_published(results: Path, study: Study) -> pd.DataFrame:
    """Published rows of `study`, by PublishedRow; empty where there are none.

    A rate of operations gives the seconds of one. Raises FieldError for an unknown unit.
    """
    path = results / "published" / f"{study.name}.csv"
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    table = pd.read_csv(path, dtype=str).fillna("")
    if lacking := {"variant", "case", "printed", "unit_meant"} - set(table.columns):
        raise FieldError(path.name, f"also the columns {sorted(lacking)}", list(table.columns))
    payload = {
        (variant.name, case.id): case.payload_bytes
        for variant in study.variants
        for case in variant.cases
    }
    known = [payload.get(pair, 0) for pair in zip(table["variant"], table["case"], strict=True)]
    table["payload_bytes"] = known
    try:
        numbers = [float(printed) for printed in table["printed"]]
    except ValueError as error:
        raise FieldError(f"{path.name}: printed", "a number in every row", str(error)) from error
    converted = [
        to_seconds(printed, unit, size, f"{path.name}: unit_meant")
        for printed, unit, size in zip(numbers, table["unit_meant"], known, strict=True)
    ]
    table["seconds"] = pd.Series(converted, dtype=float)
    table["rate"] = table["payload_bytes"] / table["seconds"] / 1e9
    table.loc[table["payload_bytes"] == 0, "rate"] = float("nan")
    return table[COLUMNS]


def to_seconds(value: float, unit: str, payload_bytes: int, where: str) -> float:
    """Seconds of one operation from a printed time or rate; NaN for a rate without payload."""
    require_known(where, unit, SI)
    base, scale = SI[unit]
    if base == "s":
        return value * scale
    if base == "1/s":
        return 1 / (value * scale)
    return payload_bytes / (value * scale) if payload_bytes else float("nan")


def best_statement(published: pd.DataFrame) -> pd.DataFrame:
    """One row per variant, case and source: the printed time if there is one, else the rate."""
    is_rate = published["unit_meant"].map(lambda unit: SI[unit][0] != "s")
    ordered = published.assign(is_rate=is_rate).sort_values("is_rate", kind="stable")
    return (
        ordered.drop_duplicates(["variant", "case", "source"]).drop(columns="is_rate").sort_index()
    )
