"""Charts of this study: memory over need and time against PyTorch, by pattern."""

from __future__ import annotations

from typing import Final

import pandas as pd

from allocator.pattern_charts import by_pattern, heat
from analysis.api.charts import Chart, StudyFacts, fresh_figures, worse_to_better

BYTES: Final = ("reserved", "active", "requested")
SEGMENT_BYTES: Final = 2 << 20
"""Smallest segment of any allocator."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`kept`: peak reserved over peak requested; `heat`: PyTorch's time over that of each."""
    scale, title = worse_to_better(8, 1.4, 1), "reserved over requested"
    what = "peak of reserved over peak of requested bytes, by pattern."
    columns = {"label": title, **{f"{name}_label": name for name in BYTES}}
    kept = by_pattern(facts, kept_table(facts), scale, title, what, columns)
    return {"kept": kept, "heat": heat(facts)}


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
