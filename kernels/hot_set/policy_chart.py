"""The chart of policies: bytes fetched beyond the optimum, with their time."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    Chart,
    StudyFacts,
    finish_rows,
    line_colour,
    named,
    named_rows,
    panels,
    select,
)
from analysis.api.quantities import percent, quantity

from .policy_results import COMPARED, policy_results

BAR_PX: Final = 14
ROOM_FOR_LABELS: Final = 1.25
"""Length of the axis over that of the longest bar."""


def policies(facts: StudyFacts) -> Chart | None:
    """Bytes beyond the optimum's by trace, a bar per policy, with the time that they take."""
    table = policy_table(facts)
    if table.empty:
        return None
    names = list(COMPARED.values())
    reach = alt.Scale(domain=[0, ROOM_FOR_LABELS * table["beyond"].max()], nice=False)
    title = "bytes fetched beyond the optimum's"
    group_px = BAR_PX * len(names)
    row = named_rows("trace", list(dict.fromkeys(table["trace"])), px=group_px)
    rows: Any = alt.Chart().encode(
        x=alt.X("beyond:Q", title=title, axis=alt.Axis(format="~%"), scale=reach),
        y=row,
        yOffset=alt.YOffset("policy:N", sort=names),
    )
    bars = rows.mark_bar().encode(
        color=line_colour("policy", names, None),
        tooltip=["machine:N", "trace:N", "policy:N", "label:N", "bytes_label:N"],
    )
    labels = rows.mark_text(align="left", dx=4, fontSize=10).encode(text="label:N")
    slots = sorted(int(count) for count in table["slots"].unique())
    chart = panels(
        named(row, bars, labels, px=group_px),
        table,
        select("slots_shown", "slots", slots, slots[len(slots) // 2]),
        filters=["datum.slots === slots_shown"],
    )
    what = f"{facts.study.title}: bytes that policies of eviction fetch beyond the optimum's."
    return finish_rows(chart, what, margin=120, px=group_px)


def policy_table(facts: StudyFacts) -> pd.DataFrame:
    """A row for each machine, trace, number of slots and policy: `beyond` is the share of bytes
    beyond the optimum's, `label` has it with the time of these bytes in a step."""
    rows = []
    for one in policy_results(facts):
        for policy, called in COMPARED.items():
            beyond = one.over_optimum(policy) - 1
            seconds = one.seconds_over_optimum(policy)
            label = percent(beyond)
            if seconds is not None:
                label += f", {quantity(seconds, 's')}"
            size = quantity(one.fetched[policy], "B")
            rows.append((one.machine, one.trace, one.slots, called, beyond, label, size))
    columns = ["machine", "trace", "slots", "policy", "beyond", "label", "bytes_label"]
    return pd.DataFrame(rows, columns=columns)
