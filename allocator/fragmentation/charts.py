"""Charts of this study: reserved over requested memory, and speed against PyTorch, by pattern."""

from __future__ import annotations

from typing import Final

import pandas as pd

from allocator.pattern_charts import REFERENCE, by_pattern, speeds
from analysis.api.charts import Chart, StudyFacts, fresh_figures

BYTES: Final = ("reserved", "active", "requested")
SEGMENT_BYTES: Final = 2 << 20
"""Smallest segment of any allocator."""
CHOICES: Final = {
    REFERENCE: "PyTorch's default",
    "torch_expandable": "expandable segments",
    "p7_ordered": "ours, p7_ordered",
}
"""PyTorch's default, and what a user can choose in its place, with their names."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`kept`: peak reserved over peak requested; `speeds`: PyTorch's time over that of each."""
    title = "reserved bytes over requested bytes"
    columns = {"label": title, **{f"{name}_label": name for name in BYTES}}
    what = "peak of reserved over peak of requested bytes, by pattern."
    kept = by_pattern(kept_table(facts), CHOICES, title, what, columns)
    return {"kept": kept, "speeds": speeds(facts, CHOICES)}


def kept_table(facts: StudyFacts) -> pd.DataFrame:
    """A row for each machine, variant and pattern with medians of BYTES, their `value` and labels.

    Patterns that hold less than a segment are left out, since their ratio means nothing.
    """
    keys = ["machine", "variant", "pattern"]
    rows = fresh_figures(facts, *BYTES)
    rows = rows[rows["after"].isna()] if "after" in rows else rows
    sizes = rows.pivot(index=keys, columns="metric", values="median").reindex(columns=BYTES)
    labels = rows.pivot(index=keys, columns="metric", values="short").reindex(columns=BYTES)
    sizes = sizes[sizes["requested"] >= SEGMENT_BYTES].dropna()
    value = sizes["reserved"] / sizes["requested"]
    return labels.add_suffix("_label").join(value.rename("value"), how="inner").reset_index()
