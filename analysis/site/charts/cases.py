"""A study over its cases: how its rates or times change with the size of the work."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.site.charts.lines import line_chart
from analysis.site.charts.steps import case_selects, default_points, varying_keys, with_keys
from analysis.site.charts.theme import (
    BASIS_COLUMNS,
    MAX_LINES,
    Chart,
    log_scale,
    si_axis,
)
from analysis.site.facts.points import CASE_PREFIX
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import parse_case


def cases_chart(facts: StudyFacts) -> Chart | None:
    """Lines along the number among a case's keys that has most values in the headline case: of the
    fastest ceiling, and of the steps that are fastest in most places.

    None where nothing is measured, or no key with numbers varies.
    """
    value = "rate" if facts.figures.are_rates else "seconds"
    points = default_points(facts)
    points = points[points[value].notna() & (points["state"] != "published")]
    keys = varying_keys(points)
    headline = parse_case(facts.study.headline)
    numbers = [key for key in keys if pd.api.types.is_numeric_dtype(points[key])]
    swept = max(numbers, key=lambda key: _values_beside(points, key, keys, headline), default=None)
    if swept is None:
        return None
    others = [key for key in keys if key != swept]
    points = with_keys(points[points[swept].notna()], others)
    fastest = points.sort_values("seconds").drop_duplicates(["machine", swept, *others])
    wins = fastest["variant"].value_counts()
    ceilings = [
        v.name for v in facts.study.with_role("ceiling") if v.name in set(points["variant"])
    ]
    steps = [v.name for v in facts.study.with_role("step", "beyond")]
    known = points.groupby("variant")[swept].nunique()
    ranked = sorted(
        (name for name in steps if known.get(name, 0) > 1),
        key=lambda name: -int(wins.get(name, 0)),
    )
    names = [*ceilings[:1], *ranked[: MAX_LINES - 1]]
    titles = {variant.name: variant.title for variant in facts.study.variants}
    rows = points[points["variant"].isin(names)]
    if rows.empty:
        return None
    label = swept.removeprefix(CASE_PREFIX).replace("_", " ")
    is_log = rows[swept].min() > 0
    x = alt.X(f"{swept}:Q", title=label, scale=log_scale() if is_log else alt.Scale())
    title = "payload rate, GB/s" if value == "rate" else "time"
    y = alt.Y(f"{value}:Q", title=title)
    if value == "seconds":
        y = y.scale(log_scale()).axis(si_axis("s"))
    drawing, rows = line_chart(
        rows, x, y, "variant", names, by=["machine", *others], intervals=True
    )
    description = f"{facts.study.title}: {title} over {label}, a line a variant."
    columns = {**BASIS_COLUMNS, "title": "what"}
    rows = rows.assign(title=rows["variant"].map(titles))
    return Chart(drawing, rows, description, columns, case_selects(rows, others, facts))


def _values_beside(
    points: pd.DataFrame, key: str, keys: list[str], headline: dict[str, Any]
) -> tuple[int, int]:
    """Number of values of `key` with the headline's of all others, and of all values."""
    beside = points
    for other in keys:
        value = headline.get(other.removeprefix(CASE_PREFIX))
        if other != key and value is not None:
            beside = beside[beside[other].isna() | (beside[other] == value)]
    return int(beside[key].nunique()), int(points[key].nunique())
