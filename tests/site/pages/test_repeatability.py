"""The method page about runs that were left out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pandas as pd

from analysis.results.tables.rows import RepeatabilityRow, columns
from analysis.site.facts.inputs import Inputs
from analysis.site.pages.repeatability import repeatability_section
from tests.synthetic import RUN


def row(study: str, *counts: Any) -> RepeatabilityRow:
    return RepeatabilityRow("box", study, 4, RUN, *counts)


def test_times_ratios_and_claims_are_counted_over_all_studies(
    two_machines: Inputs,
) -> None:
    rows = [
        row("copy", *(8, 7, 4, 0.25), *(6, 5), *(4, 1), *(3, 2), *(2, 1)),
        row("calls", *(2, 2, 2, 0.5), *(4, 4), *(0, 0), *(0, 0), *(0, 0)),
    ]
    table = pd.DataFrame(map(asdict, rows), columns=columns(RepeatabilityRow))
    said = repeatability_section(two_machines.with_tables(repeatability=table))
    assert "contain 9 of 10 (90 %) times and 9 of 10 (90 %) ratios" in said
    assert "Without regard to the speed of the host, they contain 6 of 10 (60 %) times." in said
    assert "25 %" in said and "50 %" in said
    assert "that these runs and the left-out run both decide, 1 of 2 (50 %) flip." in said
    assert "- Studies that move data (`copy`): 7 of 8 (88 %) times and 5 of 6" in said
    assert "- Other studies (`calls`): 2 of 2 (100 %) times and 4 of 4 (100 %) ratios." in said
    alone = repeatability_section(two_machines.with_tables(repeatability=table.iloc[:1]))
    assert "Other studies" not in alone
    none = two_machines.with_tables(repeatability=table.iloc[:0])
    assert repeatability_section(none) == "No machine has more than 3 runs yet."
