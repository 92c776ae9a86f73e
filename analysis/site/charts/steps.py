"""Every variant of a study in one case: how far each step goes, and what it cannot exceed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.base.quantities import INTERVAL
from analysis.site.charts.lines import clipped, run_by_run
from analysis.site.charts.rows import MARK_PX, row_chart
from analysis.site.charts.theme import (
    BASIS_COLUMNS,
    Chart,
    Select,
    colour,
    faded_if_stale,
    log_scale,
    present,
    si_axis,
)
from analysis.site.facts.points import CASE_PREFIX
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import parse_case

ROLES: Final = ("ceiling", "step", "beyond", "shipped", "reference")
"""In the order of the rows."""
COLOURED: Final = ("step", "reference", "beyond", "shipped")
NO_KEY: Final = "none"
"""Value of a key in the cases without it, of variants that have it in others."""


def steps_chart(facts: StudyFacts) -> Chart | None:
    """A row a variant, with its interval; None if unmeasured.

    Bars are rates where the study's operations deliver bytes, else dots are times.
    """
    is_rate = facts.figures.are_rates
    value = "rate" if is_rate else "seconds"
    points = default_points(facts)
    if is_rate:
        # What delivers no bytes has no rate; its times are for tables.
        points = points[points["payload_bytes"] > 0]
    # The page lists variants that no machine could run.
    points = points[~points["variant"].isin(unreached(facts, points, value))]
    if points[value].isna().all():
        return None
    keys = varying_keys(points)
    points = clipped(with_keys(points, keys), value, ["machine", *keys])
    share = [f" · {100 * one:.0f} %" if one == one else "" for one in points["share"]]
    names = {variant.name: variant.title for variant in facts.study.variants}
    points = points.assign(figure=points["short"] + share, name=points["variant"].map(names))
    # A published figure is a second mark in the row of the variant.
    is_published = points["state"] == "published"
    points = points.assign(
        published=points[value].where(is_published),
        figure=points["figure"].mask(is_published, ""),
        **{value: points[value].mask(is_published)},
    )
    order = [variant.name for role in ROLES for variant in facts.study.with_role(role)]
    description = (
        f"{facts.study.title}: {'payload rate in GB/s' if is_rate else 'time'} of every variant"
        f" in one case, with its {INTERVAL}."
    )
    return Chart(
        row_chart(
            "variant",
            order,
            *_marks(points, value),
            name="name",
            figure="figure",
            through=_rules(facts, points, value),
        ),
        points,
        description,
        BASIS_COLUMNS,
        case_selects(points, keys, facts),
    )


def _marks(points: pd.DataFrame, value: str) -> list[Any]:
    """A bar or a dot a figure, its interval or runs, and published figures."""
    base = alt.Chart().encode(x=_axis(value))
    steps = base.transform_filter("datum.role !== 'ceiling'")
    legend = alt.Legend(title=None, values=present(COLOURED, points["role"]))
    bars = (
        steps.mark_bar(height=11, yOffset=MARK_PX)
        if value == "rate"
        else steps.mark_point(filled=True, size=70, yOffset=MARK_PX)
    )
    limits = base.transform_filter("datum.role === 'ceiling'")
    marks = [
        bars.encode(color=colour("role", COLOURED, legend), opacity=faded_if_stale()),
        limits.mark_tick(style="limit", thickness=3, height=12, yOffset=MARK_PX),
        base.mark_rule(strokeWidth=1.2, yOffset=MARK_PX).encode(x="begin:Q", x2="reach:Q"),
        run_by_run(base)
        .mark_point(filled=True, size=12, color="gray", yOffset=MARK_PX)
        .encode(x="of_run:Q"),
    ]
    if points["published"].notna().any():
        diamonds = alt.Chart().mark_point(
            shape="diamond", size=70, strokeWidth=1.6, yOffset=MARK_PX
        )
        marks.append(diamonds.encode(x="published:Q", color=alt.value("gray")))
    return marks


def _rules(facts: StudyFacts, points: pd.DataFrame, value: str) -> Sequence[Any]:
    """A dashed rule through all rows for each ceiling that bounds every step."""
    bounding = [facts.study.ceilings_of(step) for step in facts.study.with_role("step")]
    ceilings = facts.study.with_role("ceiling")
    of_all = [one.name for one in ceilings if all(one in some for some in bounding)]
    if not points["variant"].isin(of_all).any():
        return []
    rule = alt.Chart().transform_filter(f"indexof({of_all}, datum.variant) >= 0")
    return [rule.mark_rule(style="limit", strokeDash=[5, 3]).encode(x=_axis(value))]


def _axis(value: str) -> alt.X:
    if value == "rate":
        scale = alt.Scale(zero=True)
        return alt.X("rate:Q", title="payload rate, GB/s", scale=scale, stack=None)
    return alt.X("seconds:Q", title="time", scale=log_scale(), axis=si_axis("s"))


def default_points(facts: StudyFacts) -> pd.DataFrame:
    """Points by the clock by which each variant is compared, and those without a figure."""
    points = facts.points
    is_default = (points["is_default"] == 1) | points["seconds"].isna()
    return points[is_default]


def unreached(facts: StudyFacts, points: pd.DataFrame, value: str) -> set[str]:
    """Variants that every machine skipped and that have no published figure."""
    return set(facts.unreached) - set(points.loc[points[value].notna(), "variant"])


def varying_keys(points: pd.DataFrame) -> list[str]:
    """Columns of case keys with more than one value, or that some cases of a variant lack."""
    keys = [str(name) for name in points.columns if str(name).startswith(CASE_PREFIX)]
    return [key for key in keys if points[key].nunique() > 1 or _partly_keyed(points, key).any()]


def _partly_keyed(points: pd.DataFrame, key: str) -> pd.Series[Any]:
    """Rows without `key`, of variants that have it in other cases."""
    has_key = points[key].notna()
    return ~has_key & has_key.groupby(points["variant"]).transform("any")


def with_keys(points: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """`points` sorted by `keys`, with NO_KEY where a variant has a key in other cases only."""
    points = points.sort_values(list(keys), kind="stable") if keys else points
    for key in keys:
        lacking = _partly_keyed(points, key)
        if lacking.any():
            points = points.assign(**{key: points[key].astype(object).mask(lacking, NO_KEY)})
    return points


def case_selects(points: pd.DataFrame, keys: Sequence[str], facts: StudyFacts) -> list[Select]:
    """A menu for each of `keys`, which begins at the headline case or, without the key there, at
    NO_KEY or the last value."""
    headline = parse_case(facts.study.headline)
    selects = []
    for key in keys:
        name = key.removeprefix(CASE_PREFIX)
        values = points[key].dropna()
        if values.empty:
            continue
        otherwise = NO_KEY if NO_KEY in set(values) else values.iloc[-1]
        selects.append(Select(key, name.replace("_", " "), headline.get(name, otherwise)))
    return selects
