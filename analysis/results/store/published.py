"""Published figures of others, in SI units: results/published/<study>.csv."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import pandas as pd

from analysis.base.keys import only
from analysis.base.quantities import SI
from analysis.base.records import columns, read_records
from analysis.results.store.keys import LARGEST, SMALLEST, CaseId, Name
from analysis.results.store.runs import PUBLISHED
from analysis.results.store.samples import NUMBER
from analysis.study import Study


def _is_above_0(text: str) -> bool:
    return bool(NUMBER.fullmatch(text)) and SMALLEST <= float(text) <= LARGEST


@dataclass(frozen=True)
class PrintedRow:
    """A printed figure and its unit, as printed and as meant."""

    variant: Name
    case: CaseId
    metric: str
    printed: Annotated[str, only(_is_above_0, "a number above 0")]
    unit_printed: str
    unit_meant: Annotated[str, only(SI.__contains__, f"one of {[*SI]}")]
    source: str
    note: str


@dataclass(frozen=True)
class PublishedRow(PrintedRow):
    """The same in SI units. `seconds` and `rate` (GB/s) are one statement: payload over the one
    gives the other; NaN where it is neither."""

    payload_bytes: int
    seconds: float
    rate: float
    is_time: bool


NOTHING: Final = pd.DataFrame(columns=list(columns(PublishedRow)))


def published_file(results: Path, study: Study) -> Path:
    return results / PUBLISHED / f"{study.name}.csv"


def load_published(results: Path, study: Study) -> pd.DataFrame:
    """Published rows of `study`, by PublishedRow. HotpathError names the invalid file and line."""
    path = published_file(results, study)
    found = []
    for row in read_records(path, PrintedRow) if path.exists() else ():
        payload = study.payloads.get((row.variant, row.case), 0)
        seconds = to_seconds(float(row.printed), row.unit_meant, payload)
        rate = payload / seconds / 1e9 if payload else math.nan
        more = {"seconds": seconds, "rate": rate, "is_time": SI[row.unit_meant][0] == "s"}
        found.append(vars(row) | {"payload_bytes": payload, **more})
    return pd.DataFrame(found, columns=NOTHING.columns)


def to_seconds(value: float, unit: str, payload_bytes: int) -> float:
    """Seconds of one operation from a printed time or rate; NaN for a rate without payload."""
    base, scale = SI[unit]
    amount = 1 if base == "1/s" else payload_bytes or math.nan
    return value * scale if base == "s" else amount / (value * scale)


def best_statement(published: pd.DataFrame) -> pd.DataFrame:
    """One row per variant, case and source: the printed time if there is one, else the rate."""
    times_first = published.sort_values("is_time", ascending=False, kind="stable")
    return times_first.drop_duplicates(["variant", "case", "source"]).sort_index()
