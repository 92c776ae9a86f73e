"""Charts of this study: memory over need and time against PyTorch, by pattern."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from allocator.pattern_charts import by_pattern, heat
from analysis.api.charts import Chart, StudyFacts, worse_to_better
from analysis.api.quantities import quantity, ratio

REFERENCE: Final = "torch_caching"
BYTES: Final = ("reserved", "active", "requested")
SEGMENT_BYTES: Final = 2 << 20
"""Smallest segment of any allocator."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`kept`: peak reserved over peak requested; `heat`: PyTorch's time over that of each."""
    return {"kept": kept(facts), "heat": heat(facts, REFERENCE, "PyTorch")}


def kept(facts: StudyFacts) -> Chart | None:
    """Reserved over requested bytes of each allocator in every pattern."""
    table = kept_table(facts)
    if table.empty:
        return None
    title = "reserved over requested"
    legend = alt.Legend(title=title, orient="bottom", format="~g", columns=1)
    colour = alt.Color("value:Q", scale=worse_to_better(8, 1.4, 1), legend=legend)
    columns = {"label": title, **{f"{name}_label": name for name in BYTES}}
    what = f"{facts.study.title}: peak of reserved over peak of requested bytes, by pattern."
    return by_pattern(facts.study, table, colour, what, columns)


def kept_table(facts: StudyFacts) -> pd.DataFrame:
    """A row for each machine, variant and pattern with medians of BYTES, their `value` and labels.

    Patterns that hold less than a segment are left out, since their ratio means nothing.
    """
    rows = [
        (row.machine, row.variant, row.case.removeprefix("pattern="), row.metric, row.median)
        for row in facts.fresh(*BYTES)
    ]
    keys = ["machine", "variant", "pattern"]
    long = pd.DataFrame(rows, columns=[*keys, "metric", "bytes"])
    table = long.pivot(index=keys, columns="metric", values="bytes").reindex(columns=list(BYTES))
    table = table.dropna().reset_index()
    table = table[table["requested"] >= SEGMENT_BYTES].copy()
    table["value"] = table["reserved"] / table["requested"]
    table["label"] = [ratio(value) for value in table["value"]]
    for name in BYTES:
        table[f"{name}_label"] = [quantity(value, "B") for value in table[name]]
    return table
