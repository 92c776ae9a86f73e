"""The explorer's first chart, as a picture: the same marks as assets/explorer.js draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.site.charts.theme import Chart, si_axis
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import parse_case

Choice = Mapping[str, Any]
"""The study, `metric`, `as` (`figure` or `rate`), the keys `x` and `colour`, and a value of each
key of a case, of `variant` and of `machine`; None is all."""

HEIGHT_PX: Final = 380
LOG_SPAN: Final = 20
"""A longer axis is logarithmic."""


def first_choice(studies: Mapping[str, StudyFacts], wanted: Mapping[str, str]) -> Choice | None:
    """The choice that `wanted` names: all values of the keys `x` and `colour`, otherwise those of
    the headline case, on the machine with the most figures. None without a figure."""
    facts = studies.get(wanted["study"])
    if facts is None:
        return None
    choice: dict[str, Any] = {"machine": None, **parse_case(facts.study.headline), **wanted}
    choice |= {choice["x"]: None, choice["colour"]: None}
    machines = _rows(facts, choice)["machine"].value_counts().sort_index()
    return None if machines.empty else choice | {"machine": machines.idxmax()}


def explorer_chart(facts: StudyFacts, choice: Choice) -> Chart:
    """Medians as points and lines."""
    rows, metric = _rows(facts, choice), facts.study.metrics[choice["metric"]]
    value: Any = rows["median"]
    axis, title = alt.Axis(), metric.label
    if choice["as"] == "rate":
        pairs = zip(rows["variant"], rows["case"], strict=True)
        value = [facts.study.payloads[pair] for pair in pairs] / value / 1e9
        title = "payload, GB/s"
    elif metric.unit == "s":
        axis = si_axis("s")
    rows = rows.assign(value=value).drop(columns="machine")
    base = alt.Chart().encode(
        x=alt.X(f"{choice['x']}:Q", scale=_scale(rows[choice["x"]])),
        y=alt.Y("value:Q", title=title, scale=_scale(rows["value"]), axis=axis),
        color=alt.Color(f"{choice['colour']}:N", sort=None),
    )
    points = base.mark_point(filled=True, size=50)
    drawing = alt.layer(base.mark_line(strokeWidth=1.2), points).properties(height=HEIGHT_PX)
    description = f"{facts.study.title}: {metric.label} over {choice['x']} by {choice['colour']}."
    return Chart(drawing, rows, description, {})


def _rows(facts: StudyFacts, choice: Choice) -> Any:
    """Figures of the chosen metric whose keys have the chosen values, with a column for each."""
    rows = facts.summary[facts.summary["metric"] == choice["metric"]]
    keys = pd.DataFrame([*map(parse_case, rows["case"])], index=rows.index)
    rows = rows[["machine", "variant", "case", "median"]].join(keys)
    for key in rows.columns.intersection([*choice]):
        if choice[key] is not None:
            rows = rows[rows[key].isna() | (rows[key] == choice[key])]
    return rows.dropna(subset=[choice["x"]])


def _scale(values: pd.Series[Any]) -> alt.Scale:
    """A scale of these values; logarithmic if they span orders of magnitude."""
    is_long = values.min() > 0 and values.max() > LOG_SPAN * values.min()
    return alt.Scale(type="log") if is_long else alt.Scale(type="linear", zero=False)
