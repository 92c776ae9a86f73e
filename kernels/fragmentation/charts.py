"""Charts of this study: memory over need and time against PyTorch, by pattern."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import pandas as pd

from allocator.charts import heat
from analysis.charts.theme import CELL_PX, Chart, finish
from analysis.facts.study_facts import StudyFacts
from analysis.quantities import quantity, ratio

BYTES: Final = ("reserved", "active", "requested")


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`kept`: peak reserved over peak requested; `heat`: PyTorch's time over that of each."""
    return {"kept": kept(facts), "heat": heat(facts)}


def kept(facts: StudyFacts) -> Chart | None:
    """How many bytes each allocator reserves for one that is requested, in every pattern."""
    table = kept_table(facts)
    if table.empty:
        return None
    study = facts.study
    patterns = dict.fromkeys(str(case["pattern"]) for v in study.variants for case in v.cases)
    names = [name for name in study.variant_names if name in set(table["variant"])]
    base: Any = alt.Chart().encode(
        x=alt.X("variant:N", sort=names, title=None, axis=alt.Axis(labelAngle=-40)),
        y=alt.Y("pattern:N", sort=list(patterns), title=None),
    )
    colour = alt.Color(
        "over:Q",
        scale=alt.Scale(type="log", domain=[1, 8], range=["#0a8f72", "#b03a3a"], clamp=True),
        legend=alt.Legend(title="reserved over requested", orient="bottom", format="~g"),
    )
    cells = base.mark_rect().encode(
        color=colour,
        tooltip=[
            *("machine:N", "pattern:N", "variant:N"),
            alt.Tooltip("label:N", title="reserved over requested"),
            *(alt.Tooltip(f"{name}_label:N", title=name) for name in BYTES),
        ],
    )
    chart = (
        alt.layer(cells, base.mark_text(fontSize=10, color="white").encode(text="label:N"))
        .properties(height=16 * table["pattern"].nunique())
        .facet(facet=alt.Facet("machine:N", title=None), columns=1, data=table)
    )
    what = "Peak of reserved bytes over peak of requested bytes, by pattern, on every machine."
    return finish(chart, what, margin=180, compact_margin=150, least=CELL_PX * len(names))


def kept_table(facts: StudyFacts) -> pd.DataFrame:
    """A row for each machine, variant and pattern with medians of BYTES, `over` and labels."""
    rows = [
        (row.machine, row.variant, row.case.removeprefix("pattern="), row.metric, row.median)
        for row in facts.figures.measured.values()
        if row.metric in BYTES and not row.stale
    ]
    keys = ["machine", "variant", "pattern"]
    long = pd.DataFrame(rows, columns=[*keys, "metric", "bytes"])
    table = long.pivot(index=keys, columns="metric", values="bytes").reindex(columns=list(BYTES))
    table = table.dropna().reset_index()
    table["over"] = table["reserved"] / table["requested"]
    table["label"] = [ratio(value) for value in table["over"]]
    for name in BYTES:
        table[f"{name}_label"] = [quantity(value, "B") for value in table[name]]
    return table
