"""Charts of this study: speed relative to PyTorch's allocator, the allocator's share of a step, and
reserved memory."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import Chart, StudyFacts, finish_rows, named, panels, variant_rows
from analysis.api.quantities import percent, quantity, ratio, ratio_interval

KEY: Final = "work="
CASE_PX: Final = 12
"""Height of a case in the row of a variant."""
SITUATIONS: Final = ("graphs_2", "graphs_10", "out_of_memory")
"""Cases whose memory hardly depends on the allocator."""

TIPS: Final = ["machine:N", "variant:N", "case:N", alt.Tooltip("label:N", title="median")]
CASES: Final = alt.Color("case:N", title=None, legend=alt.Legend(orient="top"))


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`speed`: relative to PyTorch's allocator; `share`: time in the allocator over host time;
    `memory`: peak of reserved bytes. Rows are variants, colours are cases."""
    return {"speed": speed(facts), "share": share(facts), "memory": memory(facts)}


def speed(facts: StudyFacts) -> Chart | None:
    """Speed relative to PyTorch's allocator, with intervals."""
    table = medians(facts, "relative_speed")
    if table.empty:
        return None
    ends = zip(table["low"], table["high"], strict=True)
    table = table.assign(
        label=table["value"].map(ratio), interval=[ratio_interval(*pair) for pair in ends]
    )
    scale, axis = alt.Scale(zero=False), alt.Axis(format=".2f", tickMinStep=0.01)
    low, value = (
        alt.X(f"{name}:Q", title="speed relative to PyTorch's allocator", scale=scale, axis=axis)
        for name in ("low", "value")
    )
    group_px = CASE_PX * table["case"].nunique()
    row = variant_rows(facts.study.variant_names, table, group_px)
    base = alt.Chart().encode(y=row, yOffset="case:N", color=CASES)
    tips = [*TIPS, alt.Tooltip("interval:N", title="interval")]
    layers = named(
        row,
        alt.Chart().mark_rule(style="ceiling", strokeDash=[5, 3]).encode(x=alt.datum(1.0)),
        base.mark_point(filled=True, size=45, opacity=1).encode(x=value, tooltip=tips),
        base.mark_rule(strokeWidth=1.4).encode(x=low, x2="high:Q"),
        px=group_px,
    )
    what = "Speed relative to PyTorch's allocator, by variant and case, with intervals."
    return finish_rows(panels(layers, table), what, margin=150, px=group_px)


def share(facts: StudyFacts) -> Chart | None:
    """Share of a step in the allocator, where calls are counted."""
    table = medians(facts, "allocation_share")
    axis = alt.Axis(format="%")
    what = "Time in the allocator as a share of host time, by variant and case."
    x = alt.X("value:Q", title="share of host time", axis=axis)
    return dots(facts, table.assign(label=table["value"].map(percent)), x, what)


def memory(facts: StudyFacts) -> Chart | None:
    """Peak of reserved bytes in training and inference."""
    table = medians(facts, "reserved")
    table = table[~table["case"].isin(SITUATIONS)]
    what = "Peak of reserved bytes, by variant and case."
    labels = [quantity(value, "B") for value in table["value"]]
    x = alt.X("value:Q", title="peak reserved, GB")
    return dots(facts, table.assign(label=labels, value=table["value"] / 1e9), x, what)


def medians(facts: StudyFacts, metric: str) -> pd.DataFrame:
    """A row for each machine, variant and case with the fresh median of `metric`, and the ends of
    its interval."""
    rows = [
        (
            row.machine,
            row.variant,
            row.case.removeprefix(KEY),
            row.median,
            row.ci_low,
            row.ci_high,
        )
        for row in facts.figures.fresh(metric)
    ]
    return pd.DataFrame(rows, columns=["machine", "variant", "case", "value", "low", "high"])


def dots(facts: StudyFacts, table: pd.DataFrame, x: alt.X, what: str) -> Chart | None:
    """A panel per machine, a row per variant, a dot per case at its `x`; None without data."""
    if table.empty:
        return None
    row = variant_rows(facts.study.variant_names, table)
    marks = (
        alt.Chart().mark_point(filled=True, size=70).encode(x=x, y=row, color=CASES, tooltip=TIPS)
    )
    return finish_rows(panels(named(row, marks), table), what, margin=150)
