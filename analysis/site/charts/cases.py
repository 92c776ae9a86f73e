"""A study over its cases: how its rates or times change with the size of the work."""

from __future__ import annotations

import altair as alt
import pandas as pd

from analysis.site.charts.lines import line_chart
from analysis.site.charts.steps import case_selects, default_points, varying_keys, with_keys
from analysis.site.charts.theme import BASIS_COLUMNS, MAX_LINES, Chart, log_scale, si_axis
from analysis.site.facts.points import CASE_PREFIX
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import parse_case


def cases_chart(facts: StudyFacts) -> Chart | None:
    """Lines along the number among a case's keys that has most values in the headline case: of the
    fastest ceiling, and of the steps that are fastest in most places.

    None where nothing is measured, or no key with numbers varies.
    """
    value = "rate" if facts.are_rates else "seconds"
    points = default_points(facts)
    points = points[points[value].notna() & (points["state"] != "published")]
    keys = varying_keys(points)
    headline = parse_case(facts.study.headline)

    def values(key: str) -> tuple[int, int]:
        """Number of values with all other keys as in the headline case, and in all cases."""
        usual = points
        for other in keys:
            wanted = headline.get(other.removeprefix(CASE_PREFIX))
            if other != key and wanted is not None:
                usual = usual[usual[other].isna() | (usual[other] == wanted)]
        return usual[key].nunique(), points[key].nunique()

    numbers = [key for key in keys if pd.api.types.is_numeric_dtype(points[key])]
    swept = max(numbers, key=values, default=None)
    if swept is None:
        return None
    others = [key for key in keys if key != swept]
    points = with_keys(points[points[swept].notna()], others)
    sizes = points.groupby("variant")[swept].nunique().to_dict()
    fastest = points.sort_values("seconds").drop_duplicates(["machine", swept, *others])
    wins = fastest["variant"].value_counts()
    ceilings = [one.name for one in facts.study.with_role("ceiling") if one.name in sizes]
    steps = [v.name for v in facts.study.with_role("step", "beyond") if sizes.get(v.name, 0) > 1]
    steps.sort(key=lambda name: -int(wins.get(name, 0)))
    names = [*ceilings[:1], *steps[: MAX_LINES - 1]]
    rows = points[points["variant"].isin(names)]
    label = swept.removeprefix(CASE_PREFIX).replace("_", " ")
    scale = log_scale() if rows[swept].min() > 0 else alt.Scale()
    x = alt.X(f"{swept}:Q", title=label, scale=scale)
    title = "payload rate, GB/s" if value == "rate" else "time"
    y = alt.Y(f"{value}:Q", title=title)
    if value == "seconds":
        y = y.scale(log_scale()).axis(si_axis("s"))
    description = f"{title} over {label}, a line a variant."
    columns, selects = {**BASIS_COLUMNS, "title": "what"}, case_selects(rows, others, facts)
    return line_chart(rows, x, y, "variant", names, description, columns, selects, intervals=True)
