"""Charts of this study: speed beside PyTorch's allocator, the allocator's share of a step, and the
memory that each reserves."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.charts.theme import Chart, finish, panels, variant_rows
from analysis.facts.study_facts import StudyFacts
from analysis.quantities import percent, quantity, ratio

KEY: Final = "work="
SITUATIONS: Final = ("graphs_2", "graphs_10", "out_of_memory")
"""Cases whose memory is that of what is done in them, whatever the allocator."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`speed`: beside PyTorch's own; `share`: time in the allocator over host time; `memory`: peak
    of reserved bytes. All by variant, a colour for each case."""
    return {"speed": speed(facts), "share": share(facts), "memory": memory(facts)}


def speed(facts: StudyFacts) -> Chart | None:
    """How many steps each does while PyTorch's own allocator does one."""
    table = medians(facts, "relative_speed")
    axis = alt.Axis(format=".2f")
    what = "Speed beside PyTorch's allocator, by variant and case."
    return dots(facts, table.assign(told=table["value"].map(ratio)), axis, what, zero=False)


def share(facts: StudyFacts) -> Chart | None:
    """How much of a step is spent in the allocator, where that is counted."""
    table = medians(facts, "allocation_share")
    axis = alt.Axis(format="%")
    what = "Time in the allocator as a share of host time, by variant and case."
    return dots(facts, table.assign(told=table["value"].map(percent)), axis, what)


def memory(facts: StudyFacts) -> Chart | None:
    """The most bytes that each allocator had reserved in training and inference."""
    table = medians(facts, "reserved")
    table = table[~table["case"].isin(SITUATIONS)]
    axis = alt.Axis(labelExpr="format(datum.value, '~s') + 'B'")
    what = "Peak of reserved bytes, by variant and case."
    told = [quantity(value, "B") for value in table["value"]]
    return dots(facts, table.assign(told=told), axis, what)


def medians(facts: StudyFacts, metric: str) -> pd.DataFrame:
    """A row for each machine, variant and case with a median of `metric` that is not stale."""
    rows = [
        (row.machine, row.variant, row.case.removeprefix(KEY), row.median)
        for row in facts.figures.measured.values()
        if row.metric == metric and not row.stale
    ]
    return pd.DataFrame(rows, columns=["machine", "variant", "case", "value"])


def dots(
    facts: StudyFacts, table: pd.DataFrame, axis: alt.Axis, what: str, *, zero: bool = True
) -> Chart | None:
    """A panel a machine, a row a variant, a dot a case at its `value`; None if nothing is there."""
    if table.empty:
        return None
    marks: Any = (
        alt.Chart()
        .mark_point(filled=True, size=70)
        .encode(
            x=alt.X("value:Q", title=None, axis=axis, scale=alt.Scale(zero=zero)),
            y=variant_rows(facts.study.variant_names, table),
            color=alt.Color("case:N", title=None, legend=alt.Legend(orient="top")),
            tooltip=["machine:N", "variant:N", "case:N", alt.Tooltip("told:N", title="median")],
        )
        .properties(height=alt.Step(25))
    )
    return finish(panels(marks, table), what, margin=150, compact_margin=110)
