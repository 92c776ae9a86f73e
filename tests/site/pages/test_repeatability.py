"""The method page about runs that were left out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pandas as pd

from analysis.results.tables.rows import RepeatabilityRow, columns
from analysis.site.facts.inputs import Inputs
from analysis.site.pages.repeatability import repeatability_section


def row(study: str, *counts: Any) -> RepeatabilityRow:
    return RepeatabilityRow("box", study, 5, 3, *counts)


def test_times_and_ratios_are_counted_over_all_studies(two_machines: Inputs) -> None:
    rows = [
        row("copy", *(8, 7, 0.25), *(6, 5), *(4, 1), *(3, 2)),
        row("calls", *(2, 2, 0.5), *(4, 4), *(0, 0), *(0, 0)),
    ]
    table = pd.DataFrame(map(asdict, rows), columns=columns(RepeatabilityRow))
    said = repeatability_section(two_machines.with_tables(repeatability=table))
    assert "contain 9 of 10 (90 %) times and 9 of 10 (90 %) ratios" in said
    assert "contradicts 1 of 4 (25 %) decided comparisons" in said
    assert "7 of 8" in said and "50 %" in said
    none = two_machines.with_tables(repeatability=table.iloc[:0])
    assert repeatability_section(none) == "No machine has more than 3 runs yet."
