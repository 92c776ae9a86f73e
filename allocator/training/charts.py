"""Charts of this study: speed relative to PyTorch's allocator, the allocator's share of a step, and
reserved memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import MARK_PX, Chart, StudyFacts, colour, present, row_chart, si_axis
from analysis.api.quantities import percent, quantity, ratio, ratio_interval

KEY: Final = "work="
SITUATIONS: Final = ("graphs_2", "graphs_10", "out_of_memory")
"""Cases whose memory hardly depends on the allocator."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`speed`: relative to PyTorch's allocator; `share`: time in the allocator over host time;
    `memory`: peak of reserved bytes. Rows are cases, colours are allocators."""
    return {"speed": speed(facts), "share": share(facts), "memory": memory(facts)}


def speed(facts: StudyFacts) -> Chart | None:
    """Speed relative to PyTorch's allocator, with intervals."""
    table = medians(facts, "relative_speed")
    ends = zip(table["low"], table["high"], strict=True)
    table = table.assign(
        label=table["value"].map(ratio), interval=[ratio_interval(*pair) for pair in ends]
    )
    axis = alt.Axis(format=".2f", tickMinStep=0.01)
    title = "speed relative to PyTorch's allocator"
    x = alt.X("value:Q", title=title, scale=alt.Scale(zero=False), axis=axis)
    even = alt.Chart(pd.DataFrame({"one": [1]})).mark_rule(style="limit", strokeDash=[5, 3])
    what = f"{facts.study.title}: {title}, by case and allocator."
    return dots(facts, table, x, what, through=[even.encode(x="one:Q")])


def share(facts: StudyFacts) -> Chart | None:
    """Share of a step in the allocator, where calls are counted."""
    table = medians(facts, "allocation_share")
    table = table.assign(label=table["value"].map(percent))
    x = alt.X("value:Q", title="share of host time", axis=alt.Axis(format="%"))
    what = f"{facts.study.title}: time in the allocator as a share of host time, by case."
    return dots(facts, table, x, what)


def memory(facts: StudyFacts) -> Chart | None:
    """Peak of reserved bytes in training and inference."""
    table = medians(facts, "reserved")
    table = table[~table["case"].isin(SITUATIONS)]
    table = table.assign(label=[quantity(value, "B") for value in table["value"]])
    x = alt.X("value:Q", title="peak reserved", axis=si_axis("B"))
    return dots(facts, table, x, f"{facts.study.title}: peak of reserved bytes, by case.")


def medians(facts: StudyFacts, metric: str) -> pd.DataFrame:
    """A row for each machine, variant and case with the fresh median of `metric`, and the ends of
    its interval."""
    rows = [
        (row.machine, row.variant, row.case.removeprefix(KEY), row.median, row.ci_low, row.ci_high)
        for row in facts.fresh(metric)
    ]
    return pd.DataFrame(rows, columns=["machine", "variant", "case", "value", "low", "high"])


def dots(
    facts: StudyFacts,
    table: pd.DataFrame,
    x: alt.X,
    what: str,
    through: Sequence[alt.Chart] = (),
) -> Chart | None:
    """A row a case, a dot with its interval for each allocator at its `x`; None without data."""
    if table.empty:
        return None
    titles = {variant.name: variant.title for variant in facts.study.subjects}
    table = table.assign(allocator=table["variant"].map(titles)).dropna(subset="allocator")
    names = present(titles.values(), table["allocator"])
    table = table.assign(row=table["case"].str.replace("_", " "))
    legend = alt.Legend(title=None, columns=1)
    base = alt.Chart().encode(x=x, color=colour("allocator", names, legend))
    drawing = row_chart(
        "row",
        list(dict.fromkeys(table["row"])),
        base.mark_rule(strokeWidth=1.4, yOffset=MARK_PX).encode(x="low:Q", x2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1, yOffset=MARK_PX),
        through=through,
    )
    columns = {"allocator": "allocator", "case": "case", "label": "median", "interval": "interval"}
    return Chart(drawing, table, what, columns)
