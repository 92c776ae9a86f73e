"""Rows as pages and charts see them."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.results.store.published import PublishedRow
from analysis.results.tables.rows import (
    RUN_SEPARATOR,
    ClaimPartRow,
    ClaimRow,
    CounterRow,
    ModelRow,
    ParameterRow,
    RatioRow,
    RepeatabilityRow,
    RepeatRow,
    SkippedRow,
    SummaryRow,
    rows_of,
    runs_text,
)
from analysis.toolchain.ptxas import KernelResources


@dataclass(frozen=True)
class MeasuredRow(SummaryRow):
    """A row of the summary, with its newest run and its number of disturbed rounds."""

    run: str
    disturbed: int
