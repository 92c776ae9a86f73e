"""The explorer's first chart, as a picture: the same marks as assets/explorer.js draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.site.charts.theme import Chart, finish, si_axis
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.basis import figures_by_run
from analysis.site.facts.rows import MeasuredRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import parse_case

Choice = Mapping[str, Any]
"""The study, `metric`, `as` (`figure` or `rate`), the keys `x` and `colour`, and a value of each
key of a case, of `variant` and of `machine`; None is all."""

HEIGHT_PX: Final = 380
LOG_SPAN: Final = 20
"""A longer axis is logarithmic."""
MEDIAN, RUN = "median", "run"


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
    """Medians as points and lines, runs as faint points; None without a figure."""
    table = pd.DataFrame(
        [one for row in _rows(facts, choice) for one in _points(facts, row, choice)]
    )
    if table.empty:
        return None
    metric = facts.study.metrics[choice["metric"]]
    field = _field(facts, choice)
    axis = alt.Axis() if field == "rate" else si_axis(metric.unit)
    base = alt.Chart().encode(
        x=alt.X(f"{choice['x']}:Q", scale=_scale(table[choice["x"]])),
        y=alt.Y(
            f"{field}:Q",
            title="payload, GB/s" if field == "rate" else metric.label,
            scale=_scale(table[field]),
            axis=axis,
        ),
        color=alt.Color(
            f"{choice['colour']}:N", legend=alt.Legend(orient="bottom", columns=3), sort=None
        ),
    )
    medians = base.transform_filter(f"datum.of === '{MEDIAN}'")
    runs = base.transform_filter(f"datum.of === '{RUN}'")
    layers = alt.layer(
        runs.mark_point(filled=True, size=14, opacity=0.45),
        medians.mark_line(strokeWidth=1.2),
        medians.mark_point(filled=True, size=50).encode(href="href:N"),
        data=table,
    ).properties(height=HEIGHT_PX)
    description = f"{facts.study.title}: {metric.label} over {choice['x']} by {choice['colour']}."
    return finish(layers, description, margin=80, compact_margin=70)


def _rows(facts: StudyFacts, choice: Choice) -> list[MeasuredRow]:
    """Figures of the chosen metric whose keys have the chosen values."""
    found = []
    for row in facts.figures.measured.values():
        keys = {"machine": row.machine, "variant": row.variant, **parse_case(row.case)}
        fits = all(choice.get(key) in (None, value) for key, value in keys.items())
        if row.metric == choice["metric"] and fits and choice["x"] in keys:
            found.append(row)
    return found


def _points(facts: StudyFacts, row: MeasuredRow, choice: Choice) -> list[dict[str, Any]]:
    """A point of the median and one of each run."""
    payload = facts.study.payloads[row.variant, row.case] / 1e9
    field = _field(facts, choice)
    place = {
        "machine": row.machine,
        "variant": row.variant,
        **parse_case(row.case),
        "case": row.case,
        "state": "stale" if row.stale else "measured",
        "href": samples_address(row.machine, facts.study.name, row.variant, row.case, row.metric),
    }
    values = [(MEDIAN, row.median), *((RUN, value) for value in figures_by_run(row))]
    return [
        {**place, "of": of, field: payload / value if field == "rate" else value}
        for of, value in values
    ]


def _field(facts: StudyFacts, choice: Choice) -> str:
    """The column of the figures."""
    if choice["as"] == "rate":
        return "rate"
    return "seconds" if facts.study.metrics[choice["metric"]].unit == "s" else "figure"


def _scale(values: Any) -> alt.Scale:
    """A scale of these values; logarithmic if they span orders of magnitude."""
    is_long = values.min() > 0 and values.max() > LOG_SPAN * values.min()
    return alt.Scale(type="log" if is_long else "linear", zero=False)
