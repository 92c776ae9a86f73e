"""The chart of policies: bytes fetched beyond the optimum, with their time."""

from __future__ import annotations

import altair as alt
import pandas as pd

from analysis.api.charts import MARK_PX, Chart, Select, StudyFacts, colour, row_chart
from analysis.api.quantities import percent, quantity

from .policy_results import COMPARED, policy_results


def policies(facts: StudyFacts) -> Chart | None:
    """Bytes beyond the optimum's by trace, a dot a policy."""
    table = policy_table(facts)
    if table.empty:
        return None
    names = list(COMPARED.values())
    marks = alt.Chart().mark_point(filled=True, size=70, opacity=1, yOffset=MARK_PX)
    marks = marks.encode(
        x=alt.X("beyond:Q", title="bytes fetched beyond the optimum's", axis=alt.Axis(format="~%")),
        color=colour("policy", names, alt.Legend(title=None)),
    )
    slots = sorted(int(count) for count in table["slots"].unique())
    columns = {
        "trace": "trace",
        "policy": "policy",
        "label": "beyond the optimum",
        "bytes_label": "bytes",
    }
    what = f"{facts.study.title}: bytes that policies of eviction fetch beyond the optimum's."
    drawing = row_chart("trace", list(dict.fromkeys(table["trace"])), marks)
    return Chart(drawing, table, what, columns, [Select("slots", "slots", slots[len(slots) // 2])])


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
