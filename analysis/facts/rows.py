"""Rows as pages and charts see them."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.store.published import PublishedRow
from analysis.tables.rows import (
    ClaimPartRow,
    ClaimRow,
    CounterRow,
    ModelRow,
    ParameterRow,
    RatioRow,
    RepeatRow,
    SkippedRow,
    SummaryRow,
    rows_of,
)
from analysis.toolchain.ptxas import KernelResources

__all__ = [
    "ClaimPartRow",
    "ClaimRow",
    "CounterRow",
    "KernelResources",
    "MeasuredRow",
    "ModelRow",
    "ParameterRow",
    "PublishedRow",
    "RatioRow",
    "RepeatRow",
    "SkippedRow",
    "rows_of",
]


@dataclass(frozen=True)
class MeasuredRow(SummaryRow):
    """A row of the summary, and the run that it was taken from."""

    run: str
