"""The explorer's first chart, as a picture: the same marks as assets/explorer.js draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.site.charts.theme import Chart, si_axis
from analysis.site.facts.rows import MeasuredRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import parse_case

Choice = Mapping[str, Any]
"""The study, `metric`, `as` (`figure` or `rate`), the keys `x` and `colour`, and a value of each
key of a case, of `variant` and of `machine`; None is all."""

HEIGHT_PX: Final = 380
LOG_SPAN: Final = 20
"""A longer axis is logarithmic."""


def first_choice(facts: StudyFacts, wanted: Mapping[str, str]) -> Choice | None:
    """The choice that `wanted` names: all values of the keys `x` and `colour`, otherwise those of
    the headline case, on the machine with the most figures. None without a figure."""
    choice: dict[str, Any] = {**parse_case(facts.study.headline), **wanted}
    choice |= {choice["x"]: None, choice["colour"]: None}
    counts = [row.machine for row in _rows(facts, {"machine": None, **choice})]
    if not counts:
        return None
    machine = max(sorted(set(counts)), key=counts.count)
    return choice | {"machine": machine}


def explorer_chart(facts: StudyFacts, choice: Choice) -> Chart | None:
    """Medians as points and lines; None without a figure."""
    is_rate = choice["as"] == "rate"
    rows = [
        {
            **_keys(row),
            "value": facts.study.payloads[row.variant, row.case] / row.median / 1e9
            if is_rate
            else row.median,
        }
        for row in _rows(facts, choice)
    ]
    if not rows:
        return None
    table = pd.DataFrame(rows).drop(columns="machine")
    metric = facts.study.metrics[choice["metric"]]
    axis = si_axis("s") if metric.unit == "s" and not is_rate else alt.Axis()
    title = "payload, GB/s" if is_rate else metric.label
    base = alt.Chart().encode(
        x=alt.X(f"{choice['x']}:Q", scale=_scale(table[choice["x"]])),
        y=alt.Y("value:Q", title=title, scale=_scale(table["value"]), axis=axis),
        color=alt.Color(f"{choice['colour']}:N", sort=None),
    )
    points = base.mark_point(filled=True, size=50)
    drawing = alt.layer(base.mark_line(strokeWidth=1.2), points).properties(height=HEIGHT_PX)
    description = f"{facts.study.title}: {metric.label} over {choice['x']} by {choice['colour']}."
    return Chart(drawing, table, description, {})


def _keys(row: MeasuredRow) -> dict[str, Any]:
    return {"machine": row.machine, "variant": row.variant, **parse_case(row.case)}


def _rows(facts: StudyFacts, choice: Choice) -> list[MeasuredRow]:
    """Figures of the chosen metric whose keys have the chosen values."""
    found = []
    for row in facts.figures.measured.values():
        keys = _keys(row)
        fits = all(choice.get(key) in (None, value) for key, value in keys.items())
        if row.metric == choice["metric"] and fits and choice["x"] in keys:
            found.append(row)
    return found


def _scale(values: Any) -> alt.Scale:
    """A scale of these values; logarithmic if they span orders of magnitude."""
    is_long = values.min() > 0 and values.max() > LOG_SPAN * values.min()
    return alt.Scale(type="log") if is_long else alt.Scale(type="linear", zero=False)
